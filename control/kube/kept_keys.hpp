// Which labels and annotations an object keeps. An annotation may be 256 KiB of what kubectl applied last, and the API server repeats the
// Service's own labels on each of its slices; only what has a reader is worth its memory. Pure.
#pragma once

#include <string_view>

#include "control/kube/object_id.hpp"

namespace penstock::kube {

// Services: all, since a rule about external IPs may select them by any (XIP-006). Slices: whose they are (EP-002). Nodes: all, since a
// selector or a topology may name any (TOPO-006).
[[nodiscard]] bool is_kept_label(ObjectKind kind, std::string_view key) noexcept;

// Our own, and on a Service all other keys of the table (control/annotations/table.hpp); on Endpoints, whether they were
// cut off (EP-015).
[[nodiscard]] bool is_kept_annotation(ObjectKind kind, std::string_view key) noexcept;

}  // namespace penstock::kube
