// SPDX-License-Identifier: Apache-2.0
// The network of network.hpp as a configuration, for benches that run real workers inside their own process.
#pragma once

#include <memory>

#include "dataplane/base/ids.hpp"
#include "dataplane/config/snapshot.hpp"
#include "dataplane/lb/service.hpp"

namespace penstock::perf {

inline constexpr NicPortId kUp{0};
inline constexpr NicPortId kCluster{1};

// `source`: Translate is full NAT, from the SNAT addresses of perf/wire's penstockd; Keep is DNAT only.
// `endpoints_per_service` may be 1, so that a flow's number determines its endpoint.
[[nodiscard]] std::unique_ptr<config::Snapshot> make_snapshot(lb::SourceMode source,
                                                              uint32_t endpoints_per_service);

}  // namespace penstock::perf
