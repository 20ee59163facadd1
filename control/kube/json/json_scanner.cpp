// SPDX-License-Identifier: Apache-2.0
#include "control/kube/json/json_scanner.hpp"

namespace penstock::kube {

size_t JsonScanner::scan(std::string_view bytes) noexcept {
    for (size_t i = 0; i < bytes.size(); ++i) {
        if (in_string_) {
            if (escaped_) {
                escaped_ = false;
                continue;
            }
            // Most bytes are in strings, and most of those are neither a quote nor a backslash.
            while (i < bytes.size() && bytes[i] != '"' && bytes[i] != '\\') {
                ++i;
            }
            if (i < bytes.size()) {
                in_string_ = bytes[i] != '"';
                escaped_ = in_string_;
            }
            continue;
        }
        switch (bytes[i]) {
            case '"':
                in_string_ = true;
                break;
            case '{':
            case '[':
                ++depth_;
                break;
            case '}':
            case ']':
                if (--depth_ == 0) {
                    return i + 1;
                }
                break;
            default:
                break;
        }
    }
    return bytes.size();
}

}  // namespace penstock::kube
