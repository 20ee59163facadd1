// net_vmxnet3: VMware's paravirtual NIC.
#include "drivers/pmd/profiles.hpp"

namespace penstock::drivers {
namespace {

constexpr Quirk kVmxnet3Quirks[] = {
    {"IPv4 header checksums are not verified on receipt; workers verify them",
     "drivers/net/vmxnet3/vmxnet3_ethdev.c, VMXNET3_RX_OFFLOAD_CAP"},
    {"the key is set by the configuration, and cannot be read",
     "drivers/net/vmxnet3/vmxnet3_ethdev.c, vmxnet3_eth_dev_ops"},
    {"UDP is hashed since version 4 of the device",
     "drivers/net/vmxnet3/vmxnet3_ethdev.c, vmxnet3_dev_info_get()"},
    {"the table has four entries per queue, and its size is reported only after RSS is configured",
     "drivers/net/vmxnet3/vmxnet3_rxtx.c, vmxnet3_rss_configure()"},
    {"at least 512 transmit descriptors", "drivers/net/vmxnet3/vmxnet3_ring.h, VMXNET3_DEF_TX_RING_SIZE"},
    {"no interrupt was raised when the link went down, so the link interrupt is not requested",
     "suite vm, QEMU 7.2"},
};

}  // namespace

constinit const PmdProfile kVmxnet3Profile = {
    .driver = "net_vmxnet3",
    .family = "VMware vmxnet3",
    .rss = {.kinds = kAllRssKinds, .key = RssAccess::Hidden, .key_bytes = 40, .table = RssAccess::Settable},
    .silent_link = true,
    .quirks = kVmxnet3Quirks,
};

}  // namespace penstock::drivers
