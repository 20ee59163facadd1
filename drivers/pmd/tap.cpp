// net_tap: an interface that the kernel makes.
#include "drivers/pmd/profiles.hpp"

namespace penstock::drivers {
namespace {

constexpr Quirk kTapQuirks[] = {
    {"computes transmit checksums in software, over the whole packet, where they are asked for",
     "drivers/net/tap/rte_eth_tap.c, tap_tx_l4_cksum()"},
    {"rules are the kernel's tc flower, which must be there", "drivers/net/tap/tap_flow.c"},
    {"bits of an L4 port are validated and not created: matched whole",
     "drivers/net/tap/tap_flow.c, tap_flow_create_tcp()"},
    {"its RSS is an eBPF program of a rule with a fixed key; rte_eth_conf has no part in it",
     "doc/guides/nics/tap.rst, RSS specifics"},
};

}  // namespace

constinit const PmdProfile kTapProfile = {
    .driver = "net_tap",
    .family = "TAP",
    .binding = Binding::Software,
    .spread = RxSpread::Unsteady,
    .spread_reason = "the kernel sends a flow to the TAP queue that it last came from",
    .flow = {.items = FlowExpectation::kAllItems,
             .actions = FlowExpectation::kQueue | FlowExpectation::kDrop | FlowExpectation::kRss |
                        FlowExpectation::kPassthru},
    .quirks = kTapQuirks,
};

}  // namespace penstock::drivers
