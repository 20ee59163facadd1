// net_tap: an interface that the kernel makes.
#include "drivers/pmd/profiles.hpp"

namespace penstock::drivers {
namespace {

constexpr Quirk kTapQuirks[] = {
    {"computes requested transmit checksums in software, over the whole packet",
     "drivers/net/tap/rte_eth_tap.c, tap_tx_l4_cksum()"},
    {"rules become tc flower filters of the kernel, which must support them", "drivers/net/tap/tap_flow.c"},
    {"a rule for bits of an L4 port is validated, but cannot be created: only whole ports are matched",
     "drivers/net/tap/tap_flow.c, tap_flow_create_tcp()"},
    {"its RSS is an eBPF program of a rule with a fixed key; rte_eth_conf has no effect on it",
     "doc/guides/nics/tap.rst, RSS specifics"},
};

}  // namespace

constinit const PmdProfile kTapProfile = {
    .driver = "net_tap",
    .family = "TAP",
    .binding = Binding::Software,
    .spread = RxSpread::Unsteady,
    .spread_reason = "the kernel sends a flow to the TAP queue that last sent a packet of it",
    .flow = {.items = FlowExpectation::kAllItems,
             .actions = FlowExpectation::kQueue | FlowExpectation::kDrop | FlowExpectation::kRss |
                        FlowExpectation::kPassthru},
    .quirks = kTapQuirks,
};

}  // namespace penstock::drivers
