// One JSON object as a flat list of values, each behind its parent and before its siblings, so that walking an object is walking memory:
//
//     {"a":[1,2],"b":{}}     0 {}   1 a []   2 1   3 2   4 b {}          values[1].end is 4: what is below it ends there
//
// simdjson reads the text; this remembers what it saw, because the schema asks for fields by name, of a key given twice the last counts
// (APISYNC-017), and a number that nobody asks for must not cost the object it stands in (GEN-002). Numbers are judged here: simdjson would
// refuse a document for one that is too large. Memory is reused from one text to the next.
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

// Levels of lists and mappings that an object may have (APISYNC-017).
inline constexpr uint32_t kJsonDepthMax = 64;
// Values in one text. The largest object that an API server stores, 1.5 MiB, has fewer whatever is in it, two bytes being the least a value
// takes; a hostile text of 8 MiB is kept from costing 300 MB.
inline constexpr uint32_t kJsonValuesMax = 1'000'000;

class JsonTree {
 public:
    struct Value {
        std::string_view key;   // of a field; "" of an item
        std::string_view text;  // strings: unescaped, and any bytes, NUL too; other scalars: as written
        int64_t integer = 0;
        uint32_t parent = 0;
        uint32_t end = 0;  // index behind the last value below this one
        ValueKind kind = ValueKind::Null;
    };

    JsonTree();
    ~JsonTree();
    JsonTree(const JsonTree&) = delete;
    JsonTree& operator=(const JsonTree&) = delete;

    // Reads `json`, one object with nothing but white space around it. Corrupt: it is none, or has more than kJsonValuesMax
    // values. What is nested deeper than `depth_max` levels is
    // left out, and is_too_deep() says so. The views in the tree live until the next call; `json` itself may go.
    [[nodiscard]] Status parse(std::string_view json, uint32_t depth_max = kJsonDepthMax);

    [[nodiscard]] bool is_too_deep() const noexcept { return is_too_deep_; }
    [[nodiscard]] const Value& operator[](uint32_t index) const noexcept { return values_[index]; }
    [[nodiscard]] uint32_t size() const noexcept { return static_cast<uint32_t>(values_.size()); }
    // "spec.ports[0].port", as seen from `root`.
    [[nodiscard]] std::string path(uint32_t index, uint32_t root) const;

 private:
    struct Parser;
    class Builder;

    std::unique_ptr<Parser> parser_;
    std::vector<Value> values_;
    bool is_too_deep_ = false;
};

}  // namespace penstock::kube
