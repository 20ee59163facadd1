// SPDX-License-Identifier: Apache-2.0
// HOST:PORT as its parts, for getaddrinfo(). The format has been validated before.
#pragma once

#include <string>
#include <utility>

namespace penstock {

struct HostPort {
    std::string host;  // without the brackets of an IPv6 address
    std::string port;  // "" if there is none
};

[[nodiscard]] inline HostPort split_host_port(const std::string& text) {
    const size_t colon = text.rfind(':');
    std::string host = text.substr(0, colon);
    if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
        host = host.substr(1, host.size() - 2);
    }
    return {std::move(host), colon == std::string::npos ? "" : text.substr(colon + 1)};
}

}  // namespace penstock
