// net_pcap: pcap files, or an interface through libpcap.
#include "drivers/pmd/profiles.hpp"

namespace penstock::drivers {

constinit const PmdProfile kPcapProfile = {
    .driver = "net_pcap",
    .family = "pcap files, libpcap",
    .binding = Binding::Interface,
    .spread = RxSpread::None,
    .spread_reason = "libpcap does not spread flows over queues",
    .kernel_hears = true,  // with iface=; with files there is no interface to guard
    .uses_interface = true,
};

}  // namespace penstock::drivers
