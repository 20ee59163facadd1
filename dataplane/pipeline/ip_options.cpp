// SPDX-License-Identifier: Apache-2.0
#include "dataplane/pipeline/ip_options.hpp"

namespace penstock::pipeline {

void drop_options(const WorkerContext& ctx, Burst& burst) noexcept {
    PacketList left;
    for (uint32_t at = 0; at < burst.flows.count; ++at) {
        const uint32_t i = burst.flows.at[at];
        if (has_refused_options(ctx, burst.parsed[i])) {
            burst.drop(i, DropReason::IpOptions);
        } else {
            left.add(i);
        }
    }
    burst.flows = left;
}

}  // namespace penstock::pipeline
