// SPDX-License-Identifier: Apache-2.0
#include "control/base/dns_name.hpp"

#include <algorithm>

namespace penstock {

bool is_dns_label(std::string_view text) noexcept {
    constexpr size_t kLabelBytesMax = 63;
    const auto is_alphanumeric = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
    return !text.empty() && text.size() <= kLabelBytesMax && is_alphanumeric(text.front()) &&
           is_alphanumeric(text.back()) &&
           std::ranges::all_of(text, [&](char c) { return is_alphanumeric(c) || c == '-'; });
}

bool is_dns_name(std::string_view text) noexcept {
    constexpr size_t kNameBytesMax = 253;
    if (text.size() > kNameBytesMax) {
        return false;
    }
    for (std::string_view rest = text;;) {
        const size_t dot = rest.find('.');
        if (!is_dns_label(rest.substr(0, dot))) {
            return false;
        }
        if (dot == std::string_view::npos) {
            return true;
        }
        rest.remove_prefix(dot + 1);
    }
}

}  // namespace penstock
