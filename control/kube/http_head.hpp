// The head of an HTTP answer, line by line, as far as the client cares for it. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace penstock::kube {

struct HttpHead {
    int status = 0;
    std::string content_type;
    std::string location;
    std::vector<std::string> warnings;  // their texts, for people
};

class HttpHeadReader {
 public:
    // One line with or without its line break. True when it ended the final answer's head; informational answers (1xx) start anew.
    // Lines after that (trailers) are ignored.
    bool read(std::string_view line);
    const HttpHead& head() const { return head_; }
    bool is_complete() const { return is_complete_; }

 private:
    HttpHead head_;
    bool is_complete_ = false;
};

// The text of a Warning header, `299 - "text"` (RFC 7234, 5.5), or the whole value where it has another form; control characters become
// spaces and the length has a bound.
[[nodiscard]] std::string warning_text(std::string_view value);

}  // namespace penstock::kube
