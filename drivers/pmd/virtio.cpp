// net_virtio: virtio-net of a virtual machine.
#include "drivers/pmd/profiles.hpp"

namespace penstock::drivers {
namespace {

constexpr Quirk kVirtioQuirks[] = {
    {"whoever asks for L4 checksums on receipt gets packets of the same host without one "
     "(VIRTIO_NET_F_GUEST_CSUM); Penstock does not ask, "
     "so "
     "they come whole",
     "drivers/net/virtio/virtio_ethdev.c, virtio_dev_configure(); virtio_rxtx.c, virtio_rx_offload()"},
    {"RSS only where the host offers VIRTIO_NET_F_RSS (QEMU: mq=on,rss=on, vhost off or one that knows RSS); "
     "else all queues get what the "
     "host likes",
     "drivers/net/virtio/virtio_ethdev.c, virtio_dev_info_get()"},
    {"the host keeps back the frames of each VLAN that it was not told, as soon as a driver takes "
     "VIRTIO_NET_F_CTRL_VLAN, which this one "
     "always does; a promiscuous port gets them",
     "drivers/net/virtio/virtio_ethdev.h, VIRTIO_PMD_DEFAULT_GUEST_FEATURES; virtio_ethdev.c, "
     "virtio_vlan_filter_set()"},
    {"the hash is not put into mbufs", "drivers/net/virtio/virtio_rxtx.c, virtio_rx_offload()"},
    {"key and table that are read are the driver's own copies: the device cannot be asked",
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
