// net_ena: Amazon's Elastic Network Adapter.
#include "drivers/pmd/profiles.hpp"

namespace penstock::drivers {
namespace {

constexpr Quirk kEnaQuirks[] = {
    {"tells key and kinds only with the RSS hash offload on",
     "drivers/net/ena/ena_rss.c, ena_rss_hash_conf_get()"},
    {"the device's own key cannot be read; only one that was set can",
     "drivers/net/ena/ena_rss.c, ena_get_rss_hash_key()"},
    {"the device holds the key in reverse byte order; the driver turns it round",
     "drivers/net/ena/ena_rss.c, ena_reorder_rss_hash_key()"},
    {"where the device does not tell its kinds, the driver tells all four",
     "drivers/net/ena/ena_rss.c, ena_rss_hash_conf_get()"},
    {"vfio-pci of most kernels maps without write combining, which makes sending slow on recent instances",
     "doc/guides/nics/ena.rst, Prerequisites"},
};

}  // namespace

constinit const PmdProfile kEnaProfile = {
    .driver = "net_ena",
    .family = "Amazon ENA",
    .rss = {.kinds = kAllRssKinds, .key = RssAccess::Settable, .key_bytes = 40, .table = RssAccess::Settable},
    .rss_told_with_hash = true,
    .quirks = kEnaQuirks,
};

}  // namespace penstock::drivers
