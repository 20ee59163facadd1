// SPDX-License-Identifier: Apache-2.0
// A response, and its bytes of HTTP/1.1.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace penstock::http {

struct Response {
    int status = 200;
    std::string body;
    std::string content_type = "text/plain; charset=utf-8";
    std::vector<std::pair<std::string, std::string>> headers = {};  // further ones
};

// The bytes to send.
struct Answer {
    std::string head;
    std::string body;
};

// Compressed only if `with_gzip`, and if the body is long enough to gain by it.
[[nodiscard]] Answer answer_of(Response response, bool with_gzip);

}  // namespace penstock::http
