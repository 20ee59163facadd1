// SPDX-License-Identifier: Apache-2.0
#include "control/sync/addresses/gateway_report.hpp"

#include <algorithm>
#include <vector>

#include "dataplane/base/text.hpp"

namespace penstock::sync {
namespace {

constexpr std::string_view kFormat = "1";
// Name part of an annotation's key.
constexpr size_t kKeyBytesMax = 63;

std::unexpected<Error> refused_report(const char* what) {
    return fail(Errc::Corrupt, std::string("report of a gateway: ") + what);
}

bool is_word(std::string_view text) {
    return !text.empty() && std::ranges::all_of(text, [](char c) { return c > ' ' && c < '\x7f'; });
}

// FNV-1a, 64 bits, as 16 hexadecimal digits.
std::string hash_text(std::string_view text) {
    uint64_t hash = 0xcbf2'9ce4'8422'2325;
    for (const char c : text) {
        hash = (hash ^ static_cast<unsigned char>(c)) * 0x100'0000'01b3;
    }
    std::string digits;
    for (int shift = 60; shift >= 0; shift -= 4) {
        digits += "0123456789abcdef"[hash >> shift & 15U];
    }
    return digits;
}

bool is_key_name(std::string_view text) {
    const auto is_end = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    };
    return !text.empty() && text.size() <= kKeyBytesMax && is_end(text.front()) && is_end(text.back()) &&
           std::ranges::all_of(text, [&](char c) { return is_end(c) || c == '-' || c == '_' || c == '.'; });
}

}  // namespace

std::optional<std::string> report_text(const GatewayReport& report) {
    std::string text = std::string(kFormat) + ' ' + report.gateway + ' ' + std::to_string(report.seen) + ' ' +
                       std::to_string(report.beat);
    for (const kube::ObjectName& service : report.not_served) {
        text += ' ' + service.namespace_name + '/' + service.name;
        if (text.size() > kGatewayReportBytesMax) {
            return std::nullopt;
        }
    }
    return text;
}

Result<GatewayReport> parse_report(std::string_view text) {
    if (text.size() > kGatewayReportBytesMax) {
        return refused_report("too long");
    }
    const std::vector<std::string_view> words = split(text, ' ');
    if (words.size() < 4 || words[0] != kFormat) {
        return refused_report("not of format 1");
    }
    if (!is_word(words[1])) {
        return refused_report("no gateway");
    }
    const auto seen = whole_number<uint64_t>(words[2]);
    const auto beat = whole_number<uint64_t>(words[3]);
    if (!seen || !beat) {
        return refused_report("a version or a beat that is no number");
    }
    GatewayReport report{.gateway = std::string(words[1]), .seen = *seen, .beat = *beat, .not_served = {}};
    for (size_t i = 4; i < words.size(); ++i) {
        const size_t slash = words[i].find('/');
        if (!is_word(words[i]) || slash == 0 || slash == std::string_view::npos ||
            slash + 1 == words[i].size() || words[i].find('/', slash + 1) != std::string_view::npos) {
            return refused_report("a Service that is not NAMESPACE/NAME");
        }
        report.not_served.insert(
            {std::string(words[i].substr(0, slash)), std::string(words[i].substr(slash + 1))});
    }
    return report;
}

std::string report_key(std::string_view gateway) {
    std::string name(gateway);
    if (!is_key_name(gateway)) {
        std::ranges::replace_if(
            name, [](char c) { return !is_key_name(std::string_view(&c, 1)) && c != '-' && c != '.'; }, '-');
        name = "g" + name.substr(0, 40) + "-" + hash_text(gateway);
    }
    return std::string(kReportPrefix) + name;
}

std::optional<uint64_t> version_number(std::string_view resource_version) {
    return whole_number<uint64_t>(resource_version);
}

}  // namespace penstock::sync
