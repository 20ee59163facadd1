// net_null: receives empty packets and discards all packets that are sent.
#include "drivers/pmd/profiles.hpp"

namespace penstock::drivers {
namespace {

constexpr Quirk kNullQuirks[] = {
    {"key and table can be set and read, but have no effect",
     "drivers/net/null/rte_eth_null.c, eth_rss_reta_update()"},
};

}  // namespace

constinit const PmdProfile kNullProfile = {
    .driver = "net_null",
    .family = "nothing",
    .binding = Binding::Software,
    .spread = RxSpread::None,
    .spread_reason = "its RSS can be set and read, but has no effect",
    .rss = {.kinds = kAllRssKinds, .key = RssAccess::Settable, .key_bytes = 40, .table = RssAccess::Settable},
    .quirks = kNullQuirks,
};

}  // namespace penstock::drivers
