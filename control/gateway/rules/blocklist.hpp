// The file of --blocklist: sources whose packets are dropped on arrival.
//
//   # one prefix or address a line; what follows a # is for people
//   198.51.100.0/24
//   2001:db8:bad::/48   # since Tuesday
//
// Nothing in it is guessed: a file with any mistake changes nothing, and the mistakes are named with line and rule. Pure, but for reading.
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
// A large public list has some 100,000 entries; this many still take tens of megabytes, not hundreds.
inline constexpr size_t kBlocklistPrefixesMax = 1'000'000;
// Mistakes that are told one by one; a file with more has not been written for us.
inline constexpr size_t kBlocklistMistakesTold = 16;

struct BlockedPrefix {
    Prefix prefix;
    uint32_t line = 0;
    bool operator==(const BlockedPrefix&) const = default;
};
using Blocklist = std::vector<BlockedPrefix>;

// InvalidArgument: "line 3: ..." for each mistake, joined by "; ".
[[nodiscard]] Result<Blocklist> parse_blocklist(std::string_view text);

// What packets are tested with. InvalidArgument names the line whose prefix holds one of `own`, the gateway's addresses: such a list would
// cut it off from its own network.
[[nodiscard]] Result<route::PrefixSet> admit_blocklist(const Blocklist& list, std::span<const IpAddr> own);

// Both, of a file; its name before each error. NotFound where it cannot be read.
[[nodiscard]] Result<route::PrefixSet> read_blocklist(const std::filesystem::path& file,
                                                      std::span<const IpAddr> own);

}  // namespace penstock::gateway
