// net_ixgbe: Intel 82599, X520, X540, X550; and its virtual functions.
#include "drivers/pmd/profiles.hpp"

namespace penstock::drivers {
namespace {

constexpr Quirk kIxgbeQuirks[] = {
    {"sends by its simple path only while no transmit offload is asked for",
     "drivers/net/ixgbe/ixgbe_rxtx.c, ixgbe_set_tx_function()"},
    {"the table can be set only once the port is started",
     "drivers/net/ixgbe/ixgbe_ethdev.c, ixgbe_dev_rss_reta_update()"},
    {"all rules of its flow director share one mask, and its n-tuple filters match ports whole",
     "drivers/net/ixgbe/ixgbe_flow.c, cons_parse_ntuple_filter()"},
};

constexpr Quirk kVfQuirks[] = {
    {"functions of 82599 and X540 share key and table with their port, and can neither set nor see them",
     "doc/guides/nics/intel_vf.rst; drivers/net/ixgbe/ixgbe_ethdev.c, ixgbe_rss_update_sp()"},
};

}  // namespace

constinit const PmdProfile kIxgbeProfile = {
    .driver = "net_ixgbe",
    .family = "Intel 82599, X520, X540, X550",
    .rss = kIntelRss40,
    .flow = {.items = FlowExpectation::kAllItems,
             .actions = FlowExpectation::kQueue | FlowExpectation::kDrop | FlowExpectation::kMark |
                        FlowExpectation::kRss},
    .loops_back = true,
    .quirks = kIxgbeQuirks,
};

// Listed, because what begins with a name has its profile: a function does not loop back.
constinit const PmdProfile kIxgbeVfProfile = {
    .driver = "net_ixgbe_vf",
    .family = "virtual functions of Intel 82599, X540, X550",
    .rss = kIntelRss40,
    // X550's would be another matter, but nothing tells them apart here.
    .other_hash_reason = "a virtual function may share key and table with its port, which it cannot see",
    .quirks = kVfQuirks,
};

}  // namespace penstock::drivers
