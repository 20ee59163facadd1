// net_ena: Amazon's Elastic Network Adapter.
#include "drivers/pmd/profiles.hpp"

namespace penstock::drivers {
namespace {

constexpr Quirk kEnaQuirks[] = {
    {"reports key and packet types only with the RSS hash offload on",
     "drivers/net/ena/ena_rss.c, ena_rss_hash_conf_get()"},
    {"the device's own key cannot be read, only a key that was set",
     "drivers/net/ena/ena_rss.c, ena_get_rss_hash_key()"},
    {"the device stores the key in reverse byte order; the driver reverses it",
     "drivers/net/ena/ena_rss.c, ena_reorder_rss_hash_key()"},
    {"if the device does not report its packet types, the driver reports all four",
     "drivers/net/ena/ena_rss.c, ena_rss_hash_conf_get()"},
    {"vfio-pci of most kernels maps the device without write combining, which makes transmission slow on "
     "recent instances",
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
