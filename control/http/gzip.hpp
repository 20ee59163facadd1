// SPDX-License-Identifier: Apache-2.0
// Content coding gzip (RFC 9110, 8.4.1.3) for pages.
#pragma once

#include <string>
#include <string_view>

namespace penstock::http {

// "" if zlib is out of memory.
[[nodiscard]] std::string gzip(std::string_view text);

// Whether a request with this Accept-Encoding accepts gzip: by name or by "*", and not with q=0.
[[nodiscard]] bool accepts_gzip(std::string_view accept_encoding) noexcept;

}  // namespace penstock::http
