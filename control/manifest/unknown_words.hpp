// What an API server with strict validation would refuse and a folder of manifests accepts: kinds and fields that no version of Kubernetes
// has. They change nothing (GEN-002), so a misspelt one would otherwise go unnoticed. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "control/kube/object_id.hpp"
#include "control/manifest/decode_object.hpp"
#include "control/manifest/yaml_tree.hpp"

namespace penstock::manifest {

// One for each field that is not known, in the order written; maps that users fill, such as labels, are not looked at.
[[nodiscard]] std::vector<Fault> unknown_fields(const Value& object, kube::ObjectKind kind);

// For types that are not read. nullopt where the type may be one that exists: groups and kinds of which Penstock reads nothing.
[[nodiscard]] std::optional<std::string> unknown_type(const TypeOfObject& type);

}  // namespace penstock::manifest
