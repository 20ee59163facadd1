// SPDX-License-Identifier: Apache-2.0
// Session affinity settings of a Service (AFF-003).
#pragma once

#include <cstdint>

#include "control/kube/objects.hpp"
#include "control/semantics/notices.hpp"

namespace penstock::semantics {

inline constexpr uint32_t kAffinityTimeoutDefaultSeconds = 10'800;
inline constexpr uint32_t kAffinityTimeoutMaxSeconds = 86'400;

// How long a client is pinned to its endpoint. 0: no affinity; also returned for an unknown value, with a
// notice (GEN-002).
[[nodiscard]] uint32_t affinity_timeout_of(const kube::Service& service, Notices& notices);

}  // namespace penstock::semantics
