// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/rules/blocklist.hpp"

#include <fstream>
#include <optional>
#include <string>

#include "control/base/line_mistakes.hpp"

namespace penstock::gateway {
namespace {

// Bits beyond the prefix length are an error: it is ambiguous whether the network or the host was meant.
Result<Prefix> entry(std::string_view text) {
    const size_t slash = text.find('/');
    const auto address = IpAddr::parse(text.substr(0, slash));
    if (!address) {
        return fail(Errc::InvalidArgument, quoted_start(text) + " is neither a prefix nor an address");
    }
    if (slash == std::string_view::npos) {
        return Prefix::host(*address);
    }
    const auto prefix = Prefix::parse(text);
    if (!prefix) {
        return fail(Errc::InvalidArgument, quoted_start(text) + " is neither a prefix nor an address");
    }
    if (prefix->address() != *address) {
        return fail(Errc::InvalidArgument, quoted_start(text) + " has bits beyond its prefix length: write " +
                                               prefix->to_string() + " or " +
                                               Prefix::host(*address).to_string());
    }
    return *prefix;
}

}  // namespace

Result<Blocklist> parse_blocklist(std::string_view text) {
    if (text.size() > kBlocklistBytesMax) {
        return fail(Errc::InvalidArgument, "more than " + std::to_string(kBlocklistBytesMax) + " bytes");
    }
    Blocklist list;
    LineMistakes mistakes(kBlocklistMistakesTold);
    std::optional<uint32_t> too_many;  // the line at which the list is full
    for_each_line(text, [&](std::string_view content, uint32_t line) {
        if (const auto read = entry(content); !read) {
            mistakes.add(line, read.error().what);
        } else if (list.size() == kBlocklistPrefixesMax) {
            too_many = line;
        } else {
            list.push_back({*read, line});
        }
        return !too_many;
    });
    if (too_many) {
        return fail(Errc::InvalidArgument, "line " + std::to_string(*too_many) + ": more than " +
                                               std::to_string(kBlocklistPrefixesMax) + " entries");
    }
    if (mistakes.any()) {
        return mistakes.error();
    }
    return list;
}

Result<route::PrefixSet> admit_blocklist(const Blocklist& list, std::span<const IpAddr> own) {
    LineMistakes mistakes(kBlocklistMistakesTold);
    std::vector<Prefix> prefixes;
    prefixes.reserve(list.size());
    for (const BlockedPrefix& entry : list) {
        prefixes.push_back(entry.prefix);
        for (const IpAddr& address : own) {
            if (entry.prefix.contains(address)) {
                mistakes.add(entry.line, entry.prefix.to_string() + " contains the gateway's own address " +
                                             address.to_string());
                break;
            }
        }
    }
    if (mistakes.any()) {
        return mistakes.error();
    }
    return route::PrefixSet(std::move(prefixes));
}

Result<route::PrefixSet> read_blocklist(const std::filesystem::path& file, std::span<const IpAddr> own) {
    std::ifstream stream(file, std::ios::binary);
    std::string text;
    // Read in portions, so that memory follows the file's size, and an endless file is read at most one byte
    // beyond the limit.
    constexpr size_t kPortion = 1 << 20;
    while (stream.is_open() && stream && text.size() <= kBlocklistBytesMax) {
        const size_t before = text.size();
        text.resize(before + kPortion);
        stream.read(text.data() + before, kPortion);
        text.resize(before + static_cast<size_t>(stream.gcount()));
    }
    if (!stream.is_open() || stream.bad() || std::filesystem::is_directory(file)) {
        return fail(Errc::NotFound, file.string() + ": cannot be read");
    }
    PENSTOCK_TRY_IN(file.string(), const auto list, parse_blocklist(text));
    auto set = admit_blocklist(list, own);
    return set ? std::move(set) : in_context(file.string(), set.error());
}

}  // namespace penstock::gateway
