// SPDX-License-Identifier: Apache-2.0
// The prefixes that the gateway can reach without a default route. The control plane derives from them
// whether Pods can be reached (NODEPORT-009). A default route covers all addresses and therefore gives no
// information. Pure.
#pragma once

#include <vector>

#include "control/model/desired.hpp"
#include "dataplane/route/route_table.hpp"

namespace penstock::gateway {

// Sorted; none lies inside another. If a prefix contains a route that does not lead through a twin, it is
// split into the largest pieces that exclude that route. An address block is therefore routed as a whole
// exactly if one of the results contains it, or several together cover it. At most model::kRoutedPrefixesMax,
// the widest.
[[nodiscard]] std::vector<Prefix> routed_prefixes(std::vector<route::Route> routes);

}  // namespace penstock::gateway
