// SPDX-License-Identifier: Apache-2.0
// Names as an API server accepts them (RFC 1123, in lower case). Pure; any thread.
#pragma once

#include <string_view>

namespace penstock {

// Lower-case alphanumerics and '-', alphanumeric at both ends, 1-63 bytes: names of Namespaces, Services and
// ports.
[[nodiscard]] bool is_dns_label(std::string_view text) noexcept;

// DNS labels joined by dots, at most 253 bytes: names of other objects.
[[nodiscard]] bool is_dns_name(std::string_view text) noexcept;

}  // namespace penstock
