// Base64 as kubeconfig's *-data fields have it (RFC 4648, 4): padded, line breaks allowed.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace penstock::kube {

// nullopt for anything that is not base64.
[[nodiscard]] std::optional<std::string> base64_decoded(std::string_view text);
[[nodiscard]] std::string base64_encoded(std::string_view bytes);

}  // namespace penstock::kube
