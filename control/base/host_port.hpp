// SPDX-License-Identifier: Apache-2.0
// HOST:PORT as its parts, for getaddrinfo(), and the reason why a port cannot be used. The format has been
// validated before.
#pragma once

#include <cerrno>
#include <cstring>
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

// Text of an error of bind() or listen(). If another program has the port: with the command that names it.
[[nodiscard]] inline std::string listen_error(int error, const std::string& port) {
    return std::strerror(error) +
           (error == EADDRINUSE ? ": ss -ltnp 'sport = :" + port + "' names the program" : std::string());
}

}  // namespace penstock
