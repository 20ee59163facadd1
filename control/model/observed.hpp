// What a gateway finds by itself about a Service that it serves: that its SNAT ports run out, that a port it needs is taken. penstockd
// keeps the list, penstock-sync makes Events of it.
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

// Of the sheet.
inline constexpr const char* kSnatPortExhausted = "SNATPortExhausted";                       // NAT-002
inline constexpr const char* kFailedToStartHealthCheck = "FailedToStartServiceHealthcheck";  // HC-005
inline constexpr const char* kNodePortInUse = "NodePortInUse";                               // NODEPORT-010

// Each is a line in a log and an Event in a cluster; whoever has a thousand troubles of one kind learns nothing from the next one.
inline constexpr size_t kObservedMax = 1'000;

}  // namespace penstock::model
