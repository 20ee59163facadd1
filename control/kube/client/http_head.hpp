// SPDX-License-Identifier: Apache-2.0
// The head of an HTTP response, read line by line; keeps only the fields that the client uses. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace penstock::kube {

struct HttpHead {
    int status = 0;
    std::string content_type;
    std::string location;
    std::vector<std::string> warnings;  // their texts, human-readable
};

class HttpHeadReader {
 public:
    // Reads one line, with or without its line break. Returns true at the end of the final response's head;
    // an informational response (1xx) resets the state. Later lines (trailers) are ignored.
    bool read(std::string_view line);
    const HttpHead& head() const { return head_; }
    bool is_complete() const { return is_complete_; }

 private:
    HttpHead head_;
    bool is_complete_ = false;
};

// The text of a Warning header, `299 - "text"` (RFC 7234, 5.5), or the whole value if it has another form.
// Control characters become spaces, and the length is limited.
[[nodiscard]] std::string warning_text(std::string_view value);

}  // namespace penstock::kube
