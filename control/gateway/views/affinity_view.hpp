// SPDX-License-Identifier: Apache-2.0
// Affinity entries in the form of the API.
#pragma once

#include "control/rpc/gateway.hpp"
#include "dataplane/worker/inspect.hpp"

namespace penstock::gateway {

[[nodiscard]] bool matches(const rpc::AffinityFilter& filter, const worker::AffinityView& view) noexcept;
[[nodiscard]] v1::AffinityEntry to_proto(const worker::AffinityView& view);

}  // namespace penstock::gateway
