// net_e1000_igb: Intel 82576, I350, I210 and I211.
#include "drivers/pmd/profiles.hpp"

namespace penstock::drivers {
namespace {

constexpr Quirk kIgbQuirks[] = {
    {"82575 stores a queue two bits higher in its table than the driver's table functions assume",
     "drivers/net/e1000/igb_rxtx.c, igb_rss_configure()"},
    {"QEMU before 8.0 does not emulate this NIC", "QEMU 8.0, hw/net/igb.c"},
};

}  // namespace

constinit const PmdProfile kIgbProfile = {
    .driver = "net_e1000_igb",
    .family = "Intel 82576, I350, I210, I211",
    .rss = kIntelRss40,
    .flow = {.items = FlowExpectation::kEth | FlowExpectation::kIpv4 | FlowExpectation::kIpv6 |
                      FlowExpectation::kTcp | FlowExpectation::kUdp,
             .actions = FlowExpectation::kQueue | FlowExpectation::kDrop | FlowExpectation::kRss},
    .quirks = kIgbQuirks,
};

}  // namespace penstock::drivers
