// SPDX-License-Identifier: Apache-2.0
#include "control/kube/follow/trouble.hpp"

#include <algorithm>

namespace penstock::kube {
namespace {

Trouble::Kind kind_of(const ApiStatus& status) {
    if (status.is_expired()) {
        return Trouble::Kind::Expired;
    }
    if (status.is_version_too_large()) {
        return Trouble::Kind::Behind;
    }
    switch (status.code) {
        case 400:
        case 405:
        case 422:
            return Trouble::Kind::Refused;
        case 401:
            return Trouble::Kind::Unauthorized;
        case 403:
            return Trouble::Kind::Forbidden;
        case 404:
            return Trouble::Kind::NotServed;
        case 429:
        case 503:
            return Trouble::Kind::Busy;
        default:
            return Trouble::Kind::Broken;
    }
}

// Text from a server or proxy goes to logs, pages and terminals: it is limited to one line of bounded length.
std::string shown(const std::string& text) {
    constexpr size_t kShown = 512;
    std::string line = text.substr(0, kShown);
    if (line.size() < text.size()) {
        while (!line.empty() && (static_cast<unsigned char>(text[line.size()]) & 0xC0U) == 0x80U) {
            line.pop_back();  // removes a partial UTF-8 character
        }
        line += "...";
    }
    std::ranges::replace_if(
        line, [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; }, ' ');
    return line;
}

const char* name_of(TransportError::Kind kind) {
    switch (kind) {
        case TransportError::Kind::Connect:
            return "connect";
        case TransportError::Kind::Tls:
            return "tls";
        case TransportError::Kind::Timeout:
            return "timeout";
        case TransportError::Kind::Broken:
            return "broken";
        case TransportError::Kind::Redirect:
            return "redirect";
        case TransportError::Kind::TooLarge:
            return "too_large";
        case TransportError::Kind::Credentials:
            return "credentials";
    }
    return "?";
}

}  // namespace

Trouble trouble_of(const ApiStatus& status) {
    // Each name has its own counter, so a server must not be able to create any number of names.
    const bool is_http = status.code >= 100 && status.code <= 599;
    return {.kind = kind_of(status),
            .name = is_http ? "http_" + std::to_string(status.code) : "error_event",
            .what = shown(status.to_string()),
            .retry_after = status.retry_after};
}

Trouble trouble_of(const TransportError& error) {
    // Only these two kinds mean that a response had begun.
    const bool answered =
        error.kind == TransportError::Kind::Broken || error.kind == TransportError::Kind::TooLarge;
    return {.kind = answered ? Trouble::Kind::Broken : Trouble::Kind::Unreachable,
            .name = name_of(error.kind),
            .what = error.what,
            .retry_after = std::nullopt};
}

}  // namespace penstock::kube
