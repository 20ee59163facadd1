// SPDX-License-Identifier: Apache-2.0
// Decodes the text of one manifest file into objects and problems. Pure; any thread.
//
// Each document, and each item of a List, is decoded independently (GEN-001): the text is split at `---`
// lines before parsing, so that a syntax error affects one document only. An object that violates a rule is
// *quarantined* (GEN-003): it is returned without a value, and the folder keeps its last good version.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "control/kube/objects.hpp"
#include "control/manifest/yaml_tree.hpp"

namespace penstock::manifest {

using kube::ObjectId;
using kube::ObjectKind;

using Object =
    std::variant<kube::Service, kube::EndpointSlice, kube::Node, kube::AddressPool, kube::Namespace>;

struct DecodedObject {
    ObjectId id;
    uint32_t line = 0;             // first line of its document
    std::optional<Object> object;  // nullopt: quarantined
};

// A mistake for the operator to correct, with its position.
struct Problem {
    enum class Severity : uint8_t {
        Error,    // a part of the document is not in force
        Warning,  // the document is in force, except for words without effect: probably misspelt
    };
    std::string file;
    uint32_t line = 0;   // 0: the whole file
    std::string object;  // "Service default/web"; "" if unknown
    std::string rule;
    Severity severity = Severity::Error;
    std::optional<ObjectKind> kind;  // of `object`, if known
    auto operator<=>(const Problem&) const = default;
    // "web.yaml:12: Service default/web: spec.ports[0].port is a string ("80"), must be an integer (GEN-003)"
    [[nodiscard]] std::string to_string() const;
};

struct DecodedFile {
    std::vector<DecodedObject> objects;  // in the order written; without kinds that Penstock does not read
    std::vector<Problem> problems;
    // A document could not be identified: it may contain any object that this file defined before.
    bool has_unidentified = false;
};

struct DecodeLimits {
    // The largest object that an API server accepts is 1.5 MiB (GEN-009); a folder may hold many files.
    size_t file_bytes_max = 8 * 1024 * 1024;
    size_t documents_max = 20'000;  // a file at its size limit, with the smallest useful Services
    TreeLimits tree;
};

[[nodiscard]] DecodedFile decode(std::string_view text, const std::string& file_name,
                                 const DecodeLimits& limits = {});

}  // namespace penstock::manifest
