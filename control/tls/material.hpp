// SPDX-License-Identifier: Apache-2.0
// The three PEM files of one side of mutual TLS, read and validated: its certificate chain, the private key,
// and the CAs that it accepts for the peer.
#pragma once

#include <chrono>
#include <string>

#include "dataplane/base/result.hpp"

namespace penstock::tls {

struct Files {
    std::string certificate;
    std::string key;
    std::string authority;
};

// Names of the options that supplied the files, for errors.
struct OptionNames {
    const char* certificate = "--tls-cert";
    const char* key = "--tls-key";
    const char* authority = "--tls-ca";
};

struct Material {
    using Time = std::chrono::system_clock::time_point;
    std::string certificate_pem, key_pem, authority_pem;
    std::string subject;  // of the certificate: "CN=gateway"
    Time valid_from, expires;
    Time authority_valid_from, authority_expires;  // of the CA with the latest expiry
    bool operator==(const Material&) const = default;
};

// Errors name the option, the file and the problem: unreadable, no certificate, a key in place of a
// certificate, an encrypted key, or a key of another certificate.
[[nodiscard]] Result<Material> read_material(const Files& files, const OptionNames& names);

// Verifies a client's certificate against the CAs. `others` are certificates that the client sent with it, as
// intermediate CAs; they are not trusted, and "" means none. Both are PEM. The error is "SUBJECT (issuer
// ISSUER): REASON".
[[nodiscard]] Status verify_client(const Material& material, const std::string& certificate_pem,
                                   const std::string& others_pem);

}  // namespace penstock::tls
