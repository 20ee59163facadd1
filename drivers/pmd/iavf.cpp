// net_iavf: a virtual function of ice or i40e.
#include "drivers/pmd/profiles.hpp"

namespace penstock::drivers {
namespace {

constexpr Quirk kIavfQuirks[] = {
    {"the host's driver limits the key, table and packet types of a virtual function",
     "drivers/net/iavf/iavf_ethdev.c, iavf_dev_info_get()"},
    {"if the host does not let a function choose its packet types, the driver logs a warning and reports the "
     "requested ones",
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
