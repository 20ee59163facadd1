// mlx5: ConnectX-4 to ConnectX-7 and BlueField. Bifurcated: the kernel driver stays, and both see the port.
#include "drivers/pmd/profiles.hpp"

namespace penstock::drivers {
namespace {

constexpr Quirk kMlx5Quirks[] = {
    {"if the number of queues is a power of two, its table has one entry per queue; otherwise the largest "
     "size of the device",
     "drivers/net/mlx5/mlx5_ethdev.c, mlx5_dev_configure_rss_reta()"},
    {"setting the table of a started port stops and starts it",
     "drivers/net/mlx5/mlx5_rss.c, mlx5_dev_rss_reta_update()"},
    {"without isolation it takes all frames for its MAC address, and the kernel interface receives none of "
     "them",
     "doc/guides/nics/mlx5.rst, flow isolated mode"},
    {"lpbk_mode does not loop frames back; it prevents a port from receiving its own multicast",
     "drivers/net/mlx5/mlx5_devx.c, mlx5_devx_tir_attr_set()"},
    {"needs ib_uverbs and mlx5_ib in the kernel, and rdma-core", "doc/guides/platform/mlx5.rst"},
};

}  // namespace

constinit const PmdProfile kMlx5Profile = {
    .driver = "mlx5",
    .family = "NVIDIA ConnectX-4 to -7, BlueField",
    .binding = Binding::Bifurcated,
    .rss = {.kinds = kAllRssKinds, .key = RssAccess::Settable, .key_bytes = 40, .table = RssAccess::Settable},
    .flow = {.items = FlowExpectation::kAllItems,
             .actions = FlowExpectation::kQueue | FlowExpectation::kDrop | FlowExpectation::kMark |
                        FlowExpectation::kCount | FlowExpectation::kRss,
             .masks_ports = true},
    .quirks = kMlx5Quirks,
};

}  // namespace penstock::drivers
