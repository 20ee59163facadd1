// net_i40e: Intel X710, XL710, XXV710 and X722.
#include "drivers/pmd/profiles.hpp"

namespace penstock::drivers {
namespace {

constexpr Quirk kI40eQuirks[] = {
    {"sends by its simple path only while no transmit offload is asked for",
     "drivers/net/i40e/i40e_rxtx.c, i40e_set_tx_function_flag()"},
    {"the hash function is one setting of the whole card; the driver sets it to Toeplitz when a port starts, "
     "but not with "
     "support-multi-driver=1",
     "drivers/net/i40e/i40e_ethdev.c, i40e_pf_global_rss_reset()"},
    {"symmetric hashing and simple xor are set by rte_flow only, which Penstock never does",
     "drivers/net/i40e/i40e_hash.c, i40e_hash_config_func()"},
    {"a rule of its flow director matches an L4 port whole or not at all, so no rule stands for a worker's "
     "SNAT ports",
     "drivers/net/i40e/i40e_flow.c, i40e_flow_parse_fdir_pattern()"},
};

}  // namespace

constinit const PmdProfile kI40eProfile = {
    .driver = "net_i40e",
    .family = "Intel X710, XL710, XXV710, X722",
    .rss = kIntelRss52,
    .other_hash_reason =
        "with support-multi-driver the card hashes as another driver told it, which cannot be read",
    .other_hash_if = "support-multi-driver",
    .flow = {.items = FlowExpectation::kAllItems,
             .actions = FlowExpectation::kQueue | FlowExpectation::kDrop | FlowExpectation::kMark |
                        FlowExpectation::kRss | FlowExpectation::kPassthru},
    .loops_back = true,
    .quirks = kI40eQuirks,
};

}  // namespace penstock::drivers
