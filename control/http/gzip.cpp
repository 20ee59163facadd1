// SPDX-License-Identifier: Apache-2.0
#include "control/http/gzip.hpp"

#include <zlib.h>

#include <boost/beast/core/string.hpp>

#include <optional>

#include "dataplane/base/text.hpp"

namespace penstock::http {
namespace {

// Metrics are repetitive: level 1 reduces them to 3 %, a higher level takes several times as long for little
// more.
constexpr int kLevel = 1;
constexpr int kWindowBitsGzip = MAX_WBITS + 16;  // zlib writes the gzip header

bool is_zero_weight(std::string_view parameters) noexcept {
    const std::string_view weight = trimmed(parameters);
    return (weight.starts_with("q=0") || weight.starts_with("Q=0")) &&
           weight.substr(3).find_first_not_of(".0") == std::string_view::npos;
}

}  // namespace

std::string gzip(std::string_view text) {
    z_stream stream{};
    if (deflateInit2(&stream, kLevel, Z_DEFLATED, kWindowBitsGzip, MAX_MEM_LEVEL - 1, Z_DEFAULT_STRATEGY) !=
        Z_OK) {
        return {};
    }
    std::string out(deflateBound(&stream, text.size()), '\0');
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
    stream.avail_in = static_cast<uInt>(text.size());
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = static_cast<uInt>(out.size());
    const bool whole = deflate(&stream, Z_FINISH) == Z_STREAM_END;
    out.resize(whole ? stream.total_out : 0);
    deflateEnd(&stream);
    return out;
}

bool accepts_gzip(std::string_view accept_encoding) noexcept {
    std::optional<bool> by_name;
    bool by_star = false;
    while (!accept_encoding.empty()) {
        const size_t comma = accept_encoding.find(',');
        const std::string_view item = accept_encoding.substr(0, comma);
        const size_t semicolon = item.find(';');
        const std::string_view coding = trimmed(item.substr(0, semicolon));
        const bool accepted =
            semicolon == std::string_view::npos || !is_zero_weight(item.substr(semicolon + 1));
        if (boost::beast::iequals({coding.data(), coding.size()}, "gzip")) {
            by_name = accepted;
        } else if (coding == "*") {
            by_star = accepted;
        }
        accept_encoding =
            comma == std::string_view::npos ? std::string_view() : accept_encoding.substr(comma + 1);
    }
    return by_name.value_or(by_star);
}

}  // namespace penstock::http
