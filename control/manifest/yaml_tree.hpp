// One YAML (or JSON) document as a tree that is safe to walk: bounded in depth and size with aliases counted as often as they are used,
// free of cycles, scalars typed the way the Kubernetes tools type them, every value with its line. Pure; any thread.
//
// Typing follows YAML 1.1 as kubectl reads it: a quoted scalar is a string whatever it looks like, so `port: "80"` and `port: 80` differ
// (GEN-003); plain yes, no, on and off are booleans. yaml-cpp only delivers events; nothing of it passes this door.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "control/kube/fields.hpp"

namespace penstock::manifest {

// What a hostile or broken document may cost.
struct TreeLimits {
    // Levels of lists and mappings, aliases followed; the API server's own JSON decoder is held to the same (APISYNC-017).
    uint32_t depth_max = 64;
    // Values in one document, each alias counting as the whole of what it stands for. A List of 10,000 Services has about 500,000; a
    // million take some 200 MB and a second.
    uint64_t values_max = 1'000'000;
};

// A broken rule and where it was broken.
struct Fault {
    uint32_t line = 0;
    std::string rule;
    bool operator==(const Fault&) const = default;
};

struct Value;
using ValuePtr = std::shared_ptr<const Value>;  // shared because aliases share

struct Value {
    using Kind = kube::ValueKind;
    Kind kind = Kind::Null;
    bool boolean = false;
    bool has_faults = false;  // here or below
    uint32_t line = 0;        // from 1, in the file
    uint32_t height = 1;      // levels below and including this one
    uint64_t values = 1;      // this one and all below, aliases expanded
    int64_t integer = 0;
    std::string text;  // scalars: as written, quotes and escapes resolved
    std::vector<ValuePtr> items;
    std::vector<std::pair<std::string, ValuePtr>> fields;  // in the order written; keys unique
    std::vector<Fault>
        faults;  // rules that this mapping itself breaks, though it could be read: a key given twice

    // Null where there is no such field.
    [[nodiscard]] const Value* find(std::string_view key) const noexcept;
};

struct Tree {
    ValuePtr root;               // null: the document is empty, or could not be read to its end
    std::optional<Fault> fault;  // why not
};

// Reads the first document of `text`, whose first line is line `first_line` of its file. Of a key given twice the first value is in the
// tree, and a fault of its mapping says so: the API server's strict decoding refuses such an object, and guessing which one was meant would
// be worse.
[[nodiscard]] Tree parse_tree(std::string_view text, uint32_t first_line, const TreeLimits& limits = {});

// The faults of a value and of all below it, in the order written.
[[nodiscard]] std::vector<Fault> faults_in(const Value& value);

}  // namespace penstock::manifest
