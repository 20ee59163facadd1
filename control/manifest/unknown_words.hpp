// SPDX-License-Identifier: Apache-2.0
// Detects kinds and fields that no version of Kubernetes has. An API server with strict validation would
// refuse them; a folder of manifests accepts them. They have no effect (GEN-002), so a misspelt one would
// otherwise go unnoticed. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "control/kube/object_id.hpp"
#include "control/manifest/decode_object.hpp"
#include "control/manifest/yaml_tree.hpp"

namespace penstock::manifest {

// One fault for each unknown field, in the order written; maps with user-defined keys, such as labels, are
// skipped.
[[nodiscard]] std::vector<Fault> unknown_fields(const Value& object, kube::ObjectKind kind);

// For types that are not read. nullopt if the type may exist: groups and kinds of which Penstock reads
// nothing.
[[nodiscard]] std::optional<std::string> unknown_type(const TypeOfObject& type);

}  // namespace penstock::manifest
