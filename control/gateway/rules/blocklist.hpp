// SPDX-License-Identifier: Apache-2.0
// The file of --blocklist: drop packets from these sources on arrival.
//
//   # one prefix or address per line; text after a # is a comment
//   198.51.100.0/24
//   2001:db8:bad::/48   # since Tuesday
//
// Parsing is strict: a file with any error changes nothing, and each error is reported with its line and
// rule. Pure, except for reading the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include "dataplane/base/ip.hpp"
#include "dataplane/base/result.hpp"
#include "dataplane/route/prefix_set.hpp"

namespace penstock::gateway {

inline constexpr size_t kBlocklistBytesMax = 32 << 20;
// A large public list has about 100,000 entries. This maximum takes tens of megabytes, not hundreds.
inline constexpr size_t kBlocklistPrefixesMax = 1'000'000;
// Maximum number of errors reported individually. A file with more errors is probably not a blocklist.
inline constexpr size_t kBlocklistMistakesTold = 16;

struct BlockedPrefix {
    Prefix prefix;
    uint32_t line = 0;
    bool operator==(const BlockedPrefix&) const = default;
};
using Blocklist = std::vector<BlockedPrefix>;

// InvalidArgument: "line 3: ..." for each error, joined by "; ".
[[nodiscard]] Result<Blocklist> parse_blocklist(std::string_view text);

// The set that packets are matched against. InvalidArgument names the line with a prefix that contains one of
// `own`, the gateway's addresses: such a list would disconnect the gateway from its own network.
[[nodiscard]] Result<route::PrefixSet> admit_blocklist(const Blocklist& list, std::span<const IpAddr> own);

// Reads, parses and checks a file. Each error begins with the file name. NotFound if it cannot be read.
[[nodiscard]] Result<route::PrefixSet> read_blocklist(const std::filesystem::path& file,
                                                      std::span<const IpAddr> own);

}  // namespace penstock::gateway
