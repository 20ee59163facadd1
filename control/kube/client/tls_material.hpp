// SPDX-License-Identifier: Apache-2.0
// Material for a TLS connection, as validated PEM texts: certificates parse, and the key matches its
// certificate.
#pragma once

#include <string>

#include "control/kube/client/secret.hpp"
#include "dataplane/base/result.hpp"

namespace penstock::kube {

struct TlsMaterial {
    std::string ca;           // "": the system CAs
    std::string certificate;  // the client's chain; "": none
    Secret key;
    bool operator==(const TlsMaterial&) const = default;
};

// Errors such as "CA: holds no certificate", "client key: does not belong to the client certificate"; never a
// byte of the texts.
[[nodiscard]] Status check_ca(const std::string& pem);
[[nodiscard]] Status check_pair(const std::string& certificate, const Secret& key);

}  // namespace penstock::kube
