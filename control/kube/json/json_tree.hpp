// SPDX-License-Identifier: Apache-2.0
// One JSON object as a flat list of values, each after its parent and before its siblings, so that traversing
// an object is a linear memory access:
//
//   {"a":[1,2],"b":{}}     0 {}   1 a []   2 1   3 2   4 b {}     values[1].end is 4: end of its subtree
//
// simdjson parses the text; this tree stores the values, for three reasons. The schema reads fields by name.
// Of a duplicate key the last one counts (APISYNC-017). A number that is not read must not invalidate its
// object (GEN-002). Numbers are therefore parsed here: simdjson would reject a document that contains one
// that is too large. Memory is reused from one text to the next.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "control/kube/fields.hpp"
#include "dataplane/base/result.hpp"

namespace penstock::kube {

// Maximum nesting of lists and mappings in an object (APISYNC-017).
inline constexpr uint32_t kJsonDepthMax = 64;
// Maximum number of values in one text. The largest object that an API server stores, 1.5 MiB, always has
// fewer, because a value takes at least two bytes. The limit prevents a hostile text of 8 MiB from using 300
// MB.
inline constexpr uint32_t kJsonValuesMax = 1'000'000;

class JsonTree {
 public:
    struct Value {
        std::string_view key;   // of a field; "" for an item
        std::string_view text;  // strings: unescaped, any bytes including NUL; other scalars: as written
        int64_t integer = 0;
        uint32_t parent = 0;
        uint32_t end = 0;  // index after the last value in this subtree
        ValueKind kind = ValueKind::Null;
    };

    JsonTree();
    ~JsonTree();
    JsonTree(const JsonTree&) = delete;
    JsonTree& operator=(const JsonTree&) = delete;

    // Parses `json`, one object with only white space around it. Corrupt: it is not an object, or it has more
    // than kJsonValuesMax values. Values nested deeper than `depth_max` levels are omitted, and is_too_deep()
    // is set. The views in the tree live until the next call; `json` itself may be freed.
    [[nodiscard]] Status parse(std::string_view json, uint32_t depth_max = kJsonDepthMax);

    [[nodiscard]] bool is_too_deep() const noexcept { return is_too_deep_; }
    [[nodiscard]] const Value& operator[](uint32_t index) const noexcept { return values_[index]; }
    [[nodiscard]] uint32_t size() const noexcept { return static_cast<uint32_t>(values_.size()); }
    // "spec.ports[0].port", relative to `root`.
    [[nodiscard]] std::string path(uint32_t index, uint32_t root) const;

 private:
    struct Parser;
    class Builder;

    std::unique_ptr<Parser> parser_;
    std::vector<Value> values_;
    bool is_too_deep_ = false;
};

}  // namespace penstock::kube
