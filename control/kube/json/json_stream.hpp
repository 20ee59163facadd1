// SPDX-License-Identifier: Apache-2.0
// Splits a byte stream into JSON objects. Chunks may be split anywhere: between objects, inside a string,
// inside a UTF-8 sequence (APISYNC-008). Objects need no separator; white space between them is skipped,
// anything else is an error. Pure; one thread.
//
// Only the start and end of each object are found: brackets are counted outside of strings. The decoder
// validates the JSON between them. Memory is limited to one object of bounded size.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "control/kube/json/json_scanner.hpp"
#include "dataplane/base/result.hpp"

namespace penstock::kube {

// Largest watch event and list item that must be supported, many times the maximum size that an API server
// stores (GEN-009).
inline constexpr size_t kJsonValueBytesMax = size_t{8} * 1024 * 1024;

class JsonStream {
 public:
    using OnValue = std::function<Status(std::string_view json)>;

    explicit JsonStream(size_t value_bytes_max = kJsonValueBytesMax) : value_bytes_max_(value_bytes_max) {}

    // Passes each complete object to `on_value`, in order; the view lives for that call. Stops at the first
    // error, of `on_value` or of the stream; after that the stream is unusable and every call returns the
    // error again.
    [[nodiscard]] Status push(std::string_view bytes, const OnValue& on_value);
    // End of the bytes. An error if it is in the middle of an object.
    [[nodiscard]] Status finish();

 private:
    Status broken(Error error);

    size_t value_bytes_max_;
    JsonScanner scanner_;
    std::string value_;  // the incomplete current object; its memory is reused
    std::optional<Error> error_;
};

}  // namespace penstock::kube
