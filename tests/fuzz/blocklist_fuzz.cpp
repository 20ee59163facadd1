// SPDX-License-Identifier: Apache-2.0
// Any text as a blocklist. Reading terminates. It returns either prefixes that the text contains or errors,
// never both. The resulting set blocks exactly the addresses of its entries, and never an address of the
// gateway itself.
#include <algorithm>
#include <array>
#include <string_view>

#include "control/gateway/rules/blocklist.hpp"
#include "dataplane/base/check.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace penstock;
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const auto list = gateway::parse_blocklist(text);
    if (!list) {
        PENSTOCK_CHECK(list.error().what.find("line ") != std::string::npos ||
                       size > gateway::kBlocklistBytesMax);
        PENSTOCK_CHECK(list.error().what.size() < 16'384);
        return 0;
    }
    const auto lines = static_cast<uint32_t>(std::ranges::count(text, '\n') + 1);
    uint32_t last = 0;
    for (const gateway::BlockedPrefix& entry : *list) {
        PENSTOCK_CHECK(entry.line > last && entry.line <= lines);
        last = entry.line;
    }
    const std::array own{IpAddr::v4(192, 0, 2, 1), *IpAddr::parse("2001:db8::1")};
    const auto set = gateway::admit_blocklist(*list, own);
    const auto holds = [&](const IpAddr& address) {
        return std::ranges::any_of(
            *list, [&](const gateway::BlockedPrefix& entry) { return entry.prefix.contains(address); });
    };
    PENSTOCK_CHECK(set.has_value() == std::ranges::none_of(own, holds));
    if (set) {
        for (const gateway::BlockedPrefix& entry : *list) {
            PENSTOCK_CHECK(set->contains(entry.prefix) && set->contains(entry.prefix.address()));
        }
        for (const IpAddr& address : own) {
            PENSTOCK_CHECK(!set->contains(address));
        }
    }
    return 0;
}
