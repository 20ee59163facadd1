// SPDX-License-Identifier: Apache-2.0
#include "control/kube/json/json_stream.hpp"

#include <algorithm>

namespace penstock::kube {

Status JsonStream::broken(Error error) {
    error_ = error;
    return std::unexpected(std::move(error));
}

Status JsonStream::push(std::string_view bytes, const OnValue& on_value) {
    if (error_) {
        return std::unexpected(*error_);
    }
    while (true) {
        if (scanner_.is_between()) {
            const auto begin = std::ranges::find_if_not(bytes, is_json_space);
            bytes.remove_prefix(static_cast<size_t>(begin - bytes.begin()));
            if (!bytes.empty() && bytes.front() != '{') {
                return broken({Errc::Corrupt, "expected a JSON object"});
            }
        }
        if (bytes.empty()) {
            return {};
        }
        // Scans at most to the limit, so that a stream that never ends an object costs no more than that.
        const size_t taken = scanner_.scan(bytes.substr(0, value_bytes_max_ - value_.size() + 1));
        value_.append(bytes, 0, taken);
        bytes.remove_prefix(taken);
        if (value_.size() > value_bytes_max_) {
            value_ = std::string();
            return broken({Errc::Exhausted, "an object is larger than " + std::to_string(value_bytes_max_) +
                                                " bytes (GEN-009)"});
        }
        if (scanner_.is_between()) {
            if (const Status told = on_value(value_); !told) {
                return broken(told.error());
            }
            value_.clear();
        }
    }
}

Status JsonStream::finish() {
    if (!error_ && !scanner_.is_between()) {
        return broken({Errc::Corrupt, "the stream ended inside an object, after " +
                                          std::to_string(value_.size()) + " bytes of it"});
    }
    return error_ ? Status(std::unexpected(*error_)) : Status();
}

}  // namespace penstock::kube
