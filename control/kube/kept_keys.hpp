// Which labels and annotations an object keeps. An annotation may be 256 KiB of what kubectl applied last, and the API server repeats the
// Service's own labels on each of its slices; only what has a reader is worth its memory. Pure.
#pragma once

#include <string_view>

#include "control/kube/object_id.hpp"

namespace penstock::kube {

// Services: what says that Penstock is not to serve them (SVC-005). Slices: whose they are (EP-002). Nodes: all, since a selector or a
// topology may name any (TOPO-006).
[[nodiscard]] bool is_kept_label(ObjectKind kind, std::string_view key) noexcept;

// Those of the families that the semantics room reads settings from.
[[nodiscard]] bool is_kept_annotation(ObjectKind kind, std::string_view key) noexcept;

}  // namespace penstock::kube
