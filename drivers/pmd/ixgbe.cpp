// net_ixgbe: Intel 82599, X520, X540, X550; and its virtual functions.
#include "drivers/pmd/profiles.hpp"

namespace penstock::drivers {
namespace {

constexpr Quirk kIxgbeQuirks[] = {
    {"uses its simple transmit path only if no transmit offload is requested",
     "drivers/net/ixgbe/ixgbe_rxtx.c, ixgbe_set_tx_function()"},
    {"the table can be set only once the port is started",
     "drivers/net/ixgbe/ixgbe_ethdev.c, ixgbe_dev_rss_reta_update()"},
    {"all rules of its flow director share one mask, and its n-tuple filters match whole ports",
     "drivers/net/ixgbe/ixgbe_flow.c, cons_parse_ntuple_filter()"},
};

constexpr Quirk kVfQuirks[] = {
    {"virtual functions of 82599 and X540 share key and table with their port, and can neither set nor read "
     "them",
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

// Listed separately, because the profile is found by the start of the name: a virtual function does not loop
// back.
constinit const PmdProfile kIxgbeVfProfile = {
    .driver = "net_ixgbe_vf",
    .family = "virtual functions of Intel 82599, X540, X550",
    .rss = kIntelRss40,
    // X550's functions have their own, but cannot be distinguished here.
    .other_hash_reason = "a virtual function may share key and table with its port, and cannot read them",
    .quirks = kVfQuirks,
};

}  // namespace penstock::drivers
