// SPDX-License-Identifier: Apache-2.0
// Translates the numbers in the tables of an earlier process: the records of its table file, matched by name
// with what is compiled now. Pure.
#pragma once

#include <span>

#include "control/gateway/compile/compile.hpp"
#include "control/gateway/tables/id_names.hpp"
#include "dataplane/adopt/former.hpp"

namespace penstock::gateway {

// The result without memory of tables: services, kept_endpoints, affinity_services. Records are untrusted.
[[nodiscard]] adopt::FormerTables translate_names(std::span<const ServiceRecord> services,
                                                  std::span<const EndpointRecord> endpoints,
                                                  const Compiled& compiled, const IdMap& ids);

}  // namespace penstock::gateway
