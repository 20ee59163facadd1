// net_i40e: Intel X710, XL710, XXV710 and X722.
#include "drivers/pmd/profiles.hpp"

namespace penstock::drivers {
namespace {

constexpr Quirk kI40eQuirks[] = {
    {"uses its simple transmit path only if no transmit offload is requested",
     "drivers/net/i40e/i40e_rxtx.c, i40e_set_tx_function_flag()"},
    {"the hash function is a setting of the whole card; the driver sets it to Toeplitz when a port starts, "
     "except with support-multi-driver=1",
     "drivers/net/i40e/i40e_ethdev.c, i40e_pf_global_rss_reset()"},
    {"symmetric hashing and simple xor can only be set by rte_flow, which Penstock never does",
     "drivers/net/i40e/i40e_hash.c, i40e_hash_config_func()"},
    {"a rule of its flow director matches a whole L4 port only, so no rule can cover a worker's SNAT ports",
     "drivers/net/i40e/i40e_flow.c, i40e_flow_parse_fdir_pattern()"},
};

}  // namespace

constinit const PmdProfile kI40eProfile = {
    .driver = "net_i40e",
    .family = "Intel X710, XL710, XXV710, X722",
    .rss = kIntelRss52,
    .other_hash_reason =
        "with support-multi-driver the card uses the hash function that another driver configured, which "
        "cannot be read",
    .other_hash_if = "support-multi-driver",
    .flow = {.items = FlowExpectation::kAllItems,
             .actions = FlowExpectation::kQueue | FlowExpectation::kDrop | FlowExpectation::kMark |
                        FlowExpectation::kRss | FlowExpectation::kPassthru},
    .loops_back = true,
    .quirks = kI40eQuirks,
};

}  // namespace penstock::drivers
