// SPDX-License-Identifier: Apache-2.0
// Diagnoses why a TLS connection to a gateway fails. gRPC reports a refused certificate as "Socket closed";
// this repeats the handshake and names the refusing side, the certificate and the reason.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "control/tls/material.hpp"

namespace penstock::tls {

// Returns a sentence with "certificate refused" or "TLS handshake failed"; empty if TLS is not the cause.
// `target` is HOST:PORT. Blocks for at most about three times `limit`.
[[nodiscard]] std::optional<std::string> handshake_trouble(const std::string& target,
                                                           const Material& material,
                                                           std::chrono::milliseconds limit);

}  // namespace penstock::tls
