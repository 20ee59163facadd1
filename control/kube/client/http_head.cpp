// SPDX-License-Identifier: Apache-2.0
#include "control/kube/client/http_head.hpp"

#include <algorithm>

#include "dataplane/base/text.hpp"

namespace penstock::kube {
namespace {

constexpr size_t kWarningBytesMax = 512;
constexpr size_t kWarningsPerAnswerMax = 16;

char lower(char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool is_named(std::string_view name, std::string_view expected) {
    return std::ranges::equal(name, expected, [](char a, char b) { return lower(a) == b; });
}

// "HTTP/1.1 200 OK", "HTTP/2 200".
int status_of(std::string_view line) {
    const size_t space = line.find(' ');
    int status = 0;
    for (size_t i = space; i != std::string_view::npos && ++i < line.size() && line[i] >= '0' &&
                           line[i] <= '9' && status < 1000;) {
        status = status * 10 + (line[i] - '0');
    }
    return status;
}

}  // namespace

bool HttpHeadReader::read(std::string_view line) {
    if (is_complete_) {
        return false;
    }
    while (line.ends_with('\n') || line.ends_with('\r')) {
        line.remove_suffix(1);
    }
    if (line.starts_with("HTTP/")) {
        head_ = {.status = status_of(line)};
        return false;
    }
    if (line.empty()) {
        is_complete_ = head_.status >= 200;
        return is_complete_;
    }
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos) {
        return false;
    }
    const std::string_view name = line.substr(0, colon);
    const std::string value(trimmed(line.substr(colon + 1)));
    if (is_named(name, "content-type")) {
        head_.content_type = value;
    } else if (is_named(name, "location")) {
        head_.location = value;
    } else if (is_named(name, "warning") && head_.warnings.size() < kWarningsPerAnswerMax) {
        head_.warnings.push_back(warning_text(value));
    }
    return false;
}

std::string warning_text(std::string_view value) {
    const size_t open = value.find('"');
    std::string text;
    if (open == std::string_view::npos) {
        text = value;
    } else {
        for (size_t i = open + 1; i < value.size() && value[i] != '"'; ++i) {
            if (value[i] == '\\' && i + 1 < value.size()) {
                ++i;
            }
            text.push_back(value[i]);
        }
    }
    text.resize(std::min(text.size(), kWarningBytesMax));
    std::ranges::replace_if(
        text, [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; }, ' ');
    return text;
}

}  // namespace penstock::kube
