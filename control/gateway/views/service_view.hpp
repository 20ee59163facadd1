// SPDX-License-Identifier: Apache-2.0
// Listings of service ports and backends, desired and refused ones included, with their traffic. Part of
// StatusView. Any thread; the reconciler waits only for pointer copies and short slices.
#pragma once

#include <string_view>

#include "control/gateway/program/running.hpp"
#include "control/rpc/gateway.hpp"

namespace penstock::gateway {

// An empty name or namespace matches every service port.
[[nodiscard]] v1::ListServicesResponse list_services(const Running& running, std::string_view namespace_name,
                                                     std::string_view name);
[[nodiscard]] v1::ListBackendsResponse list_backends(const Running& running, std::string_view namespace_name,
                                                     std::string_view service);

}  // namespace penstock::gateway
