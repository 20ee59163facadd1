// Where the gateway can send without a default route: what tells the control plane whether Pods can be reached (NODEPORT-009). A default
// route leads anywhere, so it says nothing. Pure.
#pragma once

#include <vector>

#include "control/model/desired.hpp"
#include "dataplane/route/route_table.hpp"

namespace penstock::gateway {

// Sorted, none inside another, and none with a route inside that leads elsewhere than through a twin: such a prefix is cut into the
// largest pieces that avoid it. So an address block is routed as a whole exactly where one of the results contains it, or several together
// make it up. At most model::kRoutedPrefixesMax, the widest.
[[nodiscard]] std::vector<Prefix> routed_prefixes(std::vector<route::Route> routes);

}  // namespace penstock::gateway
