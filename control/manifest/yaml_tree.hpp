// SPDX-License-Identifier: Apache-2.0
// One YAML (or JSON) document as a tree that is safe to traverse: depth and size are limited, with each use
// of an alias counted, it has no cycles, scalars are typed as by the Kubernetes tools, and every value has
// its line. Pure; any thread.
//
// Typing follows YAML 1.1 as kubectl reads it: a quoted scalar is always a string, so `port: "80"` and `port:
// 80` differ (GEN-003); plain yes, no, on and off are booleans. yaml-cpp only delivers events; its types are
// not used outside this unit.
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

// Limits for a hostile or malformed document.
struct TreeLimits {
    // Maximum nesting of lists and mappings, aliases included; the same limit as for the JSON of the API
    // server (APISYNC-017).
    uint32_t depth_max = 64;
    // Maximum number of values in one document, each alias counted with all values of its target. A List of
    // 10,000 Services has about 500,000; a million take some 200 MB and a second.
    uint64_t values_max = 1'000'000;
};

// A violated rule and its line.
struct Fault {
    uint32_t line = 0;
    std::string rule;
    bool operator==(const Fault&) const = default;
};

struct Value;
using ValuePtr = std::shared_ptr<const Value>;  // shared, because aliases refer to the same value

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
        faults;  // faults of this mapping itself that do not prevent reading it: a duplicate key

    // Null if there is no such field.
    [[nodiscard]] const Value* find(std::string_view key) const noexcept;
};

struct Tree {
    ValuePtr root;               // null: the document is empty, or was not readable to its end
    std::optional<Fault> fault;  // the reason
};

// Reads the first document of `text`, whose first line is line `first_line` of its file. Of a duplicate key
// the first value is in the tree, and its mapping has a fault: the API server's strict decoding refuses such
// an object, and choosing one of the values would be a guess.
[[nodiscard]] Tree parse_tree(std::string_view text, uint32_t first_line, const TreeLimits& limits = {});

// The faults of a value and of all values below it, in the order written.
[[nodiscard]] std::vector<Fault> faults_in(const Value& value);

}  // namespace penstock::manifest
