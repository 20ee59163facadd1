// SPDX-License-Identifier: Apache-2.0
// Defaults and maxima of the times and priorities that an operator may configure.
#pragma once

#include <chrono>
#include <cstdint>

namespace penstock::sync {

// Coalescing window: changes that arrive within it are sent as one update (GEN-008).
inline constexpr std::chrono::milliseconds kCoalesceDefault{50};
inline constexpr std::chrono::milliseconds kCoalesceMax{1'000};
// Period in which each gateway is compared with its desired state (APISYNC-021).
inline constexpr std::chrono::minutes kAuditPeriodDefault{30};
inline constexpr std::chrono::hours kAuditPeriodMax{24};

// --sync-priority: a range like that of other systems (VRRP 255; Kubernetes leader election has none).
inline constexpr int64_t kSyncPriorityMax = 1'000;

inline constexpr const char* kAllocationFileDefault = "/var/lib/penstock/allocations";

}  // namespace penstock::sync
