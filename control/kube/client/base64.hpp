// SPDX-License-Identifier: Apache-2.0
// Base64 as used in the *-data fields of kubeconfig (RFC 4648, 4): padded, line breaks allowed.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace penstock::kube {

// Returns nullopt for malformed base64.
[[nodiscard]] std::optional<std::string> base64_decoded(std::string_view text);
[[nodiscard]] std::string base64_encoded(std::string_view bytes);

}  // namespace penstock::kube
