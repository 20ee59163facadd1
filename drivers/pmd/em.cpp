// net_e1000_em: Intel 82540 to 82574 and what virtual machines call e1000 and e1000e.
#include "drivers/pmd/profiles.hpp"

namespace penstock::drivers {
namespace {

constexpr Quirk kEmQuirks[] = {
    {"two receive queues are offered and RSS is not: all frames come to the first",
     "drivers/net/e1000/em_ethdev.c, eth_em_infos_get(); em_rxtx.c, eth_em_rx_init()"},
    {"the interrupt of a link that goes down did not come from an e1000e, so it is not asked for",
     "suite vm, QEMU 7.2"},
};

}  // namespace

constinit const PmdProfile kEmProfile = {
    .driver = "net_e1000_em",
    .family = "Intel 8254x, 82574; e1000 and e1000e of virtual machines",
    .silent_link = true,
    .quirks = kEmQuirks,
};

}  // namespace penstock::drivers
