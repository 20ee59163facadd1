// SPDX-License-Identifier: Apache-2.0
// A text that must not be disclosed: a token, a key, a URL with a password. It has no stream operator, no
// formatter and no conversion, so that logs, dumps and assertion messages cannot contain it (AUTH-009). Code
// that needs the text requests it by name.
#pragma once

#include <string>
#include <utility>

namespace penstock::kube {

class Secret {
 public:
    Secret() = default;
    explicit Secret(std::string text) : text_(std::move(text)) {}
    [[nodiscard]] const std::string& reveal() const noexcept { return text_; }
    [[nodiscard]] bool is_empty() const noexcept { return text_.empty(); }
    bool operator==(const Secret&) const = default;

 private:
    std::string text_;
};

}  // namespace penstock::kube
