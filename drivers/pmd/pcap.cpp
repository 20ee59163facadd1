// net_pcap: files, or an interface by libpcap.
#include "drivers/pmd/profiles.hpp"

namespace penstock::drivers {

constinit const PmdProfile kPcapProfile = {
    .driver = "net_pcap",
    .family = "pcap files, libpcap",
    .binding = Binding::Interface,
    .spread = RxSpread::None,
    .spread_reason = "libpcap does not spread",
    .kernel_hears = true,  // with iface=; with files there is no interface to guard
    .uses_interface = true,
};

}  // namespace penstock::drivers
