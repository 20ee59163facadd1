// Content coding gzip (RFC 9110, 8.4.1.3) of pages.
#pragma once

#include <string>
#include <string_view>

namespace penstock::http {

// "" where zlib has no memory.
[[nodiscard]] std::string gzip(std::string_view text);

// Whether a request with this Accept-Encoding takes gzip: named, or by "*", and not with q=0.
[[nodiscard]] bool accepts_gzip(std::string_view accept_encoding) noexcept;

}  // namespace penstock::http
