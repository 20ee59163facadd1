// SPDX-License-Identifier: Apache-2.0
// Notices that a gateway raises itself about a Service that it serves, for example that its SNAT ports are
// exhausted or that a required port is in use. penstockd keeps the list; penstock-sync turns each notice into
// an Event.
#pragma once

#include <compare>
#include <cstddef>

#include "control/model/desired.hpp"

namespace penstock::model {

struct ObservedNotice {
    ServiceKey key;
    Notice notice;
    auto operator<=>(const ObservedNotice&) const = default;
};

// Reasons, as named in the requirement sheet.
inline constexpr const char* kSnatPortExhausted = "SNATPortExhausted";                       // NAT-002
inline constexpr const char* kFailedToStartHealthCheck = "FailedToStartServiceHealthcheck";  // HC-005
inline constexpr const char* kNodePortInUse = "NodePortInUse";                               // NODEPORT-010
inline constexpr const char* kVipLimitReached = "VIPLimitReached";                           // LB-018
inline constexpr const char* kVipRouteConflict = "VIPRouteConflict";                         // PRESENCE-002

inline constexpr const char* kUnsupportedAnnotation = "UnsupportedAnnotation";  // ANN-G4

// Limit of the list. Each notice is a log line and an Event; beyond 1,000, further notices add no
// information.
inline constexpr size_t kObservedMax = 1'000;

}  // namespace penstock::model
