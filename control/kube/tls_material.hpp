// What a TLS connection is made with, as PEM texts that have been looked at: certificates parse, and the key belongs to its certificate.
#pragma once

#include <string>

#include "control/kube/secret.hpp"
#include "dataplane/base/result.hpp"

namespace penstock::kube {

struct TlsMaterial {
    std::string ca;           // "": the system's authorities
    std::string certificate;  // the client's chain; "": none
    Secret key;
    bool operator==(const TlsMaterial&) const = default;
};

// Errors say "CA: holds no certificate", "client key: does not belong to the client certificate"; never a byte of the texts.
[[nodiscard]] Status check_ca(const std::string& pem);
[[nodiscard]] Status check_pair(const std::string& certificate, const Secret& key);

}  // namespace penstock::kube
