// SPDX-License-Identifier: Apache-2.0
#include "control/http/answer.hpp"

#include <cstddef>
#include <utility>

#include "control/http/gzip.hpp"

namespace penstock::http {
namespace {

// Shorter pages fit in one packet uncompressed.
constexpr size_t kGzipBytesMin = 1'400;

const char* phrase(int status) {
    switch (status) {
        case 200:
            return "OK";
        case 400:
            return "Bad Request";
        case 404:
            return "Not Found";
        case 405:
            return "Method Not Allowed";
        case 431:
            return "Request Header Fields Too Large";
        case 503:
            return "Service Unavailable";
        default:
            return status < 400 ? "OK" : "Error";
    }
}

}  // namespace

Answer answer_of(Response response, bool with_gzip) {
    Answer answer{.head = {}, .body = std::move(response.body)};
    if (with_gzip && answer.body.size() >= kGzipBytesMin) {
        if (std::string packed = gzip(answer.body); !packed.empty()) {
            answer.body = std::move(packed);
            response.headers.emplace_back("Content-Encoding", "gzip");
        }
    }
    answer.head = "HTTP/1.1 " + std::to_string(response.status) + " " + phrase(response.status) +
                  "\r\nContent-Type: " + response.content_type +
                  "\r\nContent-Length: " + std::to_string(answer.body.size()) +
                  "\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n";
    for (const auto& [name, value] : response.headers) {
        answer.head += name + ": " + value + "\r\n";
    }
    answer.head += "Connection: close\r\n\r\n";
    return answer;
}

}  // namespace penstock::http
