// net_iavf: a virtual function of ice or i40e.
#include "drivers/pmd/profiles.hpp"

namespace penstock::drivers {
namespace {

constexpr Quirk kIavfQuirks[] = {
    {"key, table and kinds are what the host's driver lets a function have",
     "drivers/net/iavf/iavf_ethdev.c, iavf_dev_info_get()"},
    {"where the host lets no function choose its kinds, the driver warns in its log and tells what was asked",
     "drivers/net/iavf/iavf_ethdev.c, iavf_config_rss_hf()"},
};

}  // namespace

constinit const PmdProfile kIavfProfile = {
    .driver = "net_iavf",
    .family = "virtual functions of Intel 700 and 800 series",
    .rss = kIntelRss52,
    .flow = {.items = FlowExpectation::kAllItems,
             .actions = FlowExpectation::kQueue | FlowExpectation::kDrop | FlowExpectation::kMark |
                        FlowExpectation::kCount | FlowExpectation::kRss | FlowExpectation::kPassthru},
    .quirks = kIavfQuirks,
};

}  // namespace penstock::drivers
