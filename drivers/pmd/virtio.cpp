// net_virtio: virtio-net of a virtual machine.
#include "drivers/pmd/profiles.hpp"

namespace penstock::drivers {
namespace {

constexpr Quirk kVirtioQuirks[] = {
    {"with the L4 receive checksum offload, packets of the same host arrive without a checksum "
     "(VIRTIO_NET_F_GUEST_CSUM); Penstock does not request it, so their checksums are complete",
     "drivers/net/virtio/virtio_ethdev.c, virtio_dev_configure(); virtio_rxtx.c, virtio_rx_offload()"},
    {"RSS only if the host offers VIRTIO_NET_F_RSS (QEMU: mq=on,rss=on, with vhost off or a vhost that "
     "supports RSS); otherwise the host chooses the queue of each packet",
     "drivers/net/virtio/virtio_ethdev.c, virtio_dev_info_get()"},
    {"once a driver accepts VIRTIO_NET_F_CTRL_VLAN, which this one always does, the host drops the frames of "
     "VLANs that were not configured; a promiscuous port receives them",
     "drivers/net/virtio/virtio_ethdev.h, VIRTIO_PMD_DEFAULT_GUEST_FEATURES; virtio_ethdev.c, "
     "virtio_vlan_filter_set()"},
    {"the hash is not stored in mbufs", "drivers/net/virtio/virtio_rxtx.c, virtio_rx_offload()"},
    {"key and table that are read are the driver's own copies: the device does not report them",
     "drivers/net/virtio/virtio_ethdev.c, virtio_dev_rss_hash_conf_get()"},
};

}  // namespace

constinit const PmdProfile kVirtioProfile = {
    .driver = "net_virtio",
    .family = "virtio-net (PCI)",
    .rss = {.kinds = kAllRssKinds, .key = RssAccess::Settable, .key_bytes = 40, .table = RssAccess::Settable},
    .filters_vlans = true,
    .quirks = kVirtioQuirks,
};

}  // namespace penstock::drivers
