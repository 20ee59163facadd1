// Text of one manifest file -> objects and problems. Pure; any thread.
//
// Each document, and each item of a List, stands alone (GEN-001): the text is cut at `---` lines before anything is parsed, so that a
// syntax error costs one document. An object that breaks a rule is *quarantined* (GEN-003): it comes out without a value, which tells the
// folder to keep the last good one.
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

using Object = std::variant<kube::Service, kube::EndpointSlice, kube::Node>;

struct DecodedObject {
    ObjectId id;
    uint32_t line = 0;             // where its document begins
    std::optional<Object> object;  // nullopt: quarantined
};

// What an operator has to mend, and where.
struct Problem {
    enum class Severity : uint8_t {
        Error,    // something of the document is not in force
        Warning,  // it is, but for words that change nothing: probably misspelt
    };
    std::string file;
    uint32_t line = 0;   // 0: the file as a whole
    std::string object;  // "Service default/web"; "" where the document does not say
    std::string rule;
    Severity severity = Severity::Error;
    std::optional<ObjectKind> kind;  // of `object`, where it is known
    auto operator<=>(const Problem&) const = default;
    // "web.yaml:12: Service default/web: spec.ports[0].port is a string ("80"), must be an integer (GEN-003)"
    [[nodiscard]] std::string to_string() const;
};

struct DecodedFile {
    std::vector<DecodedObject>
        objects;  // in the order written; kinds that Penstock does not read are left out
    std::vector<Problem> problems;
    // A document could not be read far enough to know what it defines: whatever this file defined before may be in there.
    bool has_unidentified = false;
};

struct DecodeLimits {
    // The largest object that an API server takes is 1.5 MiB (GEN-009); a folder may hold any number of files.
    size_t file_bytes_max = 8 * 1024 * 1024;
    size_t documents_max = 20'000;  // a file at its size limit, full of the smallest useful Services
    TreeLimits tree;
};

[[nodiscard]] DecodedFile decode(std::string_view text, const std::string& file_name,
                                 const DecodeLimits& limits = {});

}  // namespace penstock::manifest
