// net_e1000_em: Intel 82540 to 82574, and e1000 and e1000e of virtual machines.
#include "drivers/pmd/profiles.hpp"

namespace penstock::drivers {
namespace {

constexpr Quirk kEmQuirks[] = {
    {"offers two receive queues, but no RSS: all frames arrive on the first queue",
     "drivers/net/e1000/em_ethdev.c, eth_em_infos_get(); em_rxtx.c, eth_em_rx_init()"},
    {"an e1000e raised no interrupt when the link went down, so the link interrupt is not requested",
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
