// A stream of JSON objects out of byte chunks that are cut anywhere: between objects, inside a string, inside a UTF-8 sequence
// (APISYNC-008). Objects need nothing between them; white space there is skipped, anything else is an error. Pure; one thread.
//
// This finds where each object begins and ends, and no more: brackets are counted outside of strings. Whether what lies between them is
// JSON the decoder tells. Memory is one object, and bounded.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "control/kube/json_scanner.hpp"
#include "dataplane/base/result.hpp"

namespace penstock::kube {

// The largest watch event and the largest item of a list that must work, many times over what an API server stores (GEN-009).
inline constexpr size_t kJsonValueBytesMax = size_t{8} * 1024 * 1024;

class JsonStream {
 public:
    using OnValue = std::function<Status(std::string_view json)>;

    explicit JsonStream(size_t value_bytes_max = kJsonValueBytesMax) : value_bytes_max_(value_bytes_max) {}

    // Hands each object that is complete by now to `on_value`, in order; the view lives for that call. Ends at the first error, of
    // `on_value` or of the stream; the stream is of no use afterwards, and says so again at each call.
    [[nodiscard]] Status push(std::string_view bytes, const OnValue& on_value);
    // The bytes have ended. An error where they did so in the middle of an object.
    [[nodiscard]] Status finish();

 private:
    Status broken(Error error);

    size_t value_bytes_max_;
    JsonScanner scanner_;
    std::string value_;  // what is there of the object that has begun; keeps its memory
    std::optional<Error> error_;
};

}  // namespace penstock::kube
