// Times that an operator may choose: what they are unless told, and how far they go.
#pragma once

#include <chrono>
#include <cstdint>

namespace penstock::sync {

// Changes heard within it become one (GEN-008).
inline constexpr std::chrono::milliseconds kCoalesceDefault{50};
inline constexpr std::chrono::milliseconds kCoalesceMax{1'000};
// How often a gateway is compared with what it should have (APISYNC-021).
inline constexpr std::chrono::minutes kAuditPeriodDefault{30};
inline constexpr std::chrono::hours kAuditPeriodMax{24};

// --sync-priority: as many levels as priorities of other systems have (VRRP 255, Kubernetes leader election none).
inline constexpr int64_t kSyncPriorityMax = 1'000;

}  // namespace penstock::sync
