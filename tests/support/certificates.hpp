// SPDX-License-Identifier: Apache-2.0
// Certificates generated at run time: an authority, server names, expired certificates, client keys. They
// need no file and no fixed key, and do not expire.
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace penstock::test {

struct Issued {
    std::string certificate;  // PEM
    std::string key;          // PEM, PKCS #8, no password
};

struct CertificateRequest {
    std::string common_name = "penstock-test";
    std::vector<std::string> dns_names;
    std::vector<std::string> addresses;
    std::vector<std::string> organizations;  // groups, if the API server reads it as a user
    bool is_expired = false;
    int days = 1;         // of validity from now, unless is_expired
    bool is_rsa = false;  // false: EC P-256
};

class CertificateAuthority {
 public:
    explicit CertificateAuthority(const std::string& name = "penstock-test-ca");
    ~CertificateAuthority();
    CertificateAuthority(CertificateAuthority&&) noexcept;

    [[nodiscard]] Issued issue(const CertificateRequest& request) const;
    // For 127.0.0.1 and localhost.
    [[nodiscard]] Issued issue_loopback() const;
    [[nodiscard]] const std::string& pem() const;

 private:
    struct State;
    std::unique_ptr<State> state_;
};

// The same key, protected by a password.
[[nodiscard]] std::string encrypted_key(const std::string& key, const std::string& password);

}  // namespace penstock::test
