// SPDX-License-Identifier: Apache-2.0
// Address of a gateway and the certificates for it, as given to a program: the same syntax in penstock-sync
// and penstockctl. Pure.
#pragma once

#include <string>
#include <string_view>

#include "dataplane/base/result.hpp"

namespace penstock::client {

inline constexpr const char* kDefaultTarget = "unix:/run/penstock/penstockd.sock";
inline constexpr const char* kDefaultSyncTarget = "unix:/run/penstock/penstock-sync.sock";

// unix:PATH, or HOST:PORT.
struct Target {
    std::string text = kDefaultTarget;
    [[nodiscard]] bool is_unix() const noexcept { return text.starts_with("unix:"); }
    auto operator<=>(const Target&) const = default;
};

// "unix:/run/x.sock", "gateway.example:7443", "10.0.0.1:7443", "[2001:db8::1]:7443"; InvalidArgument names
// the text and the rule.
[[nodiscard]] Result<Target> parse_target(std::string_view text);

// Paths of PEM files: the own certificate, its key, and the CA that signed the gateway's certificate.
struct TlsFiles {
    std::string certificate;
    std::string key;
    std::string authority;
};

// A TCP target requires all three: penstockd serves TCP with mutual TLS only. On a Unix socket the file mode
// controls access, and the certificates are not used.
[[nodiscard]] Status check_tls(const Target& target, const TlsFiles& tls);

}  // namespace penstock::client
