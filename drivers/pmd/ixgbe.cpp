// net_ixgbe: Intel 82599, X520, X540, X550; and its virtual functions.
#include "drivers/pmd/profiles.hpp"

namespace penstock::drivers {
namespace {

constexpr Quirk kQuirks[] = {
    {"the table can be set only once the port is started", "drivers/net/ixgbe/ixgbe_ethdev.c, ixgbe_dev_rss_reta_update()"},
    {"82598 takes neither key nor table after its start", "drivers/net/ixgbe/ixgbe_ethdev.c, ixgbe_rss_update_sp()"},
    {"all rules of its flow director share one mask, and its n-tuple filters match ports whole",
     "drivers/net/ixgbe/ixgbe_flow.c, cons_parse_ntuple_filter()"},
};

constexpr Quirk kVfQuirks[] = {
    {"all functions of one port share the key and, before X550, the table of the port",
     "drivers/net/ixgbe/ixgbe_rxtx.c, ixgbe_dev_mq_rx_configure()"},
};

}  // namespace

constinit const PmdProfile kIxgbeProfile = {
    .driver = "net_ixgbe",
    .family = "Intel 82599, X520, X540, X550",
    .rss = kIntelRss40,
    .flow = {.items = FlowExpectation::kAllItems,
             .actions = FlowExpectation::kQueue | FlowExpectation::kDrop | FlowExpectation::kMark | FlowExpectation::kRss},
    .loops_back = true,
    .quirks = kQuirks,
};

// Listed, because what begins with a name has its profile: a function does not loop back.
constinit const PmdProfile kIxgbeVfProfile = {
    .driver = "net_ixgbe_vf",
    .family = "virtual functions of Intel 82599, X540, X550",
    .rss = kIntelRss40,
    .quirks = kVfQuirks,
};

}  // namespace penstock::drivers
