// Finds the end of one JSON object whose bytes come in chunks cut anywhere, by counting brackets outside of strings. All that matters is
// ASCII, and in UTF-8 no ASCII byte is a part of anything else, so a cut inside a character needs no care (APISYNC-008). Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace penstock::kube {

class JsonScanner {
 public:
    // `bytes` continue the object, or begin it with its '{'. How many of them belong to it: all, unless its end is among them. `{]` ends
    // here as well; the parser will not have it.
    [[nodiscard]] size_t scan(std::string_view bytes) noexcept;
    // Between two objects: none has begun, or the last one is complete.
    [[nodiscard]] bool is_between() const noexcept { return depth_ == 0; }

 private:
    uint32_t depth_ = 0;  // of brackets: no more than there are bytes
    bool in_string_ = false;
    bool escaped_ = false;  // in a string, behind a backslash
};

// JSON's own four; no other control character may stand between values.
[[nodiscard]] constexpr bool is_json_space(char c) noexcept {
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

}  // namespace penstock::kube
