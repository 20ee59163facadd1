// SPDX-License-Identifier: Apache-2.0
// A response as bytes of HTTP/1.1.
#pragma once

#include <string>

#include "control/http/server.hpp"

namespace penstock::http {

// The bytes to send.
struct Answer {
    std::string head;
    std::string body;
};

// Compressed only if `with_gzip`, and if the body is long enough to gain by it.
[[nodiscard]] Answer answer_of(Response response, bool with_gzip);

}  // namespace penstock::http
