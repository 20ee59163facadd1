// SPDX-License-Identifier: Apache-2.0
// Selects the labels and annotations that an object keeps. An annotation may hold 256 KiB (kubectl's last
// applied configuration), and the API server copies the labels of a Service to each of its slices. Only keys
// that are read are kept, to save memory. Pure.
#pragma once

#include <string_view>

#include "control/kube/object_id.hpp"

namespace penstock::kube {

// Services: all, since a rule about external IPs may select them by any label (XIP-006). Slices: the labels
// that name their Service (EP-002). Nodes: all, since a selector or a topology may name any label (TOPO-006).
[[nodiscard]] bool is_kept_label(ObjectKind kind, std::string_view key) noexcept;

// Penstock's own annotations, and on a Service all other keys of the table (control/annotations/table.hpp);
// on Endpoints, the annotation that marks a truncated list (EP-015).
[[nodiscard]] bool is_kept_annotation(ObjectKind kind, std::string_view key) noexcept;

}  // namespace penstock::kube
