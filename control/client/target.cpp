// SPDX-License-Identifier: Apache-2.0
#include "control/client/target.hpp"

#include "dataplane/base/text.hpp"

namespace penstock::client {
namespace {

bool is_l4_port(std::string_view text) {
    return whole_number<uint16_t>(text).value_or(0) != 0;
}

}  // namespace

Result<Target> parse_target(std::string_view text) {
    constexpr std::string_view kUnix = "unix:";
    const auto refuse = [text](const char* rule) {
        return fail(Errc::InvalidArgument, "\"" + std::string(text) + "\" " + rule);
    };
    if (text.starts_with(kUnix)) {
        // sockaddr_un has 108 bytes, including the terminator.
        constexpr size_t kSocketPathMax = 107;
        if (text.size() == kUnix.size() || text.size() - kUnix.size() > kSocketPathMax) {
            return refuse("must be unix:PATH with a path of 1 to 107 bytes");
        }
        return Target{std::string(text)};
    }
    const size_t colon = text.rfind(':');
    if (colon == std::string_view::npos || colon == 0 || !is_l4_port(text.substr(colon + 1))) {
        return refuse("must be unix:PATH or HOST:PORT with a port from 1 to 65535");
    }
    const std::string_view host = text.substr(0, colon);
    const bool bracketed = host.front() == '[' && host.back() == ']';
    if (!bracketed && host.find_first_of(":/[]") != std::string_view::npos) {
        return refuse("must begin with a name, an IPv4 address, or an IPv6 address in brackets");
    }
    return Target{std::string(text)};
}

Status check_tls(const Target& target, const TlsFiles& tls) {
    if (!target.is_unix() && (tls.certificate.empty() || tls.key.empty() || tls.authority.empty())) {
        return fail(Errc::InvalidArgument,
                    "gateway " + target.text +
                        ": a TCP target needs --tls-cert, --tls-key and --tls-ca (mutual TLS)");
    }
    return {};
}

}  // namespace penstock::client
