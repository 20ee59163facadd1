// SPDX-License-Identifier: Apache-2.0
// Messages of refusals (LB-024). Pure.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "control/ipam/allocation.hpp"
#include "control/ipam/pool_table.hpp"

namespace penstock::ipam {

// "default/web"
[[nodiscard]] std::string name_text(const kube::ObjectName& service);

[[nodiscard]] std::string no_such_pool_text(const std::string& pool, const PoolTable& pools);
[[nodiscard]] std::string outside_text(const IpAddr& address, const PoolTable& pools);

[[nodiscard]] RefusalReason reason_of(Obstacle obstacle, Choice choice) noexcept;

// The reason is that of the pool that was closest to serve the Service; the message names the three closest
// pools. `passed_over` is in the order of choice.
[[nodiscard]] Refusal refusal_of(const Request& request,
                                 std::vector<std::pair<PoolTable::Index, PassedOver>> passed_over,
                                 const PoolTable& pools, Choice choice);

// The addresses with their pools, the refusal, and what is to be reported about addresses in no pool.
[[nodiscard]] Allocation allocation_of(const std::vector<IpAddr>& addresses, const PoolTable& pools,
                                       std::optional<Refusal> refusal);

}  // namespace penstock::ipam
