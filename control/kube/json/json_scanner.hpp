// SPDX-License-Identifier: Apache-2.0
// Finds the end of one JSON object in a stream of arbitrarily split chunks, by counting brackets outside of
// strings. All relevant bytes are ASCII, and no ASCII byte is part of another UTF-8 character, so a split
// inside a character needs no handling (APISYNC-008). Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace penstock::kube {

class JsonScanner {
 public:
    // `bytes` continue the object, or begin it with its '{'. Returns how many of them belong to the object:
    // all, unless they contain its end. `{]` also ends an object here; the parser rejects it.
    [[nodiscard]] size_t scan(std::string_view bytes) noexcept;
    // Between two objects: none has begun, or the last one is complete.
    [[nodiscard]] bool is_between() const noexcept { return depth_ == 0; }

 private:
    uint32_t depth_ = 0;  // of brackets: at most the number of bytes
    bool in_string_ = false;
    bool escaped_ = false;  // in a string, after a backslash
};

// JSON's four white space characters; no other control character is permitted between values.
[[nodiscard]] constexpr bool is_json_space(char c) noexcept {
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

}  // namespace penstock::kube
