// SPDX-License-Identifier: Apache-2.0
// The backend sets of a service port as workers read them: the desired endpoints that new flows may get,
// according to the last probe results, prepared for the scheduler. Pure.
#pragma once

#include "control/gateway/compile/endpoint_health.hpp"
#include "control/gateway/compile/id_map.hpp"
#include "control/model/desired.hpp"
#include "dataplane/base/ids.hpp"
#include "dataplane/lb/service.hpp"

namespace penstock::gateway {

// `desired` is a set of `service`, which has the id `id`. All its endpoints have ids.
[[nodiscard]] lb::BackendSet build_set(const model::Service& service, const model::BackendSet& desired,
                                       ServiceId id, const IdMap& ids, const SharedHealth& health);
// Compares everything that determines which backend a new flow gets, and whether it has records. Display
// names, notices and frontends are not compared.
[[nodiscard]] bool same_backends(const model::Service& a, const model::Service& b);
// Whether all endpoints of a set are down and are used nevertheless (HC-010).
[[nodiscard]] bool fails_open(const model::Service& service, const SharedHealth& health);

}  // namespace penstock::gateway
