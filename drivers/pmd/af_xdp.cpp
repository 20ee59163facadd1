// SPDX-License-Identifier: Apache-2.0
// net_af_xdp: receives frames in the driver, before the kernel's stack, so that no guard is needed. It has as
// many queues as the interface has combined channels. veth reports none and gets one, whatever its real
// number of queues. A buffer with its mempool header must fit in one page, which limits the MTU (3,050 with
// our headroom and steps of 1 KB; mempool.cpp).
#include <algorithm>

#include "drivers/pmd/completion.hpp"

namespace penstock::drivers {

Result<CompletionResult> complete_af_xdp(DeviceString& device, const CompletionFacts& facts) {
    const unsigned channels = std::max(1u, facts.interface_channels);
    const auto first = device.argument("start_queue") == nullptr ? Result<uint32_t>(0)
                                                                 : number_argument(device, "start_queue", 0);
    if (!first && *device.argument("start_queue") != "0") {
        return std::unexpected(first.error());
    }
    const unsigned skipped = first.value_or(0);
    if (skipped >= channels) {
        return fail(Errc::InvalidArgument, device.name + ": start_queue=" + std::to_string(skipped) +
                                               ", but the interface has " + std::to_string(channels) +
                                               " channels");
    }
    device.complete("queue_count", std::to_string(std::min(facts.queues, channels - skipped)));
    return CompletionResult{frame_bytes(facts.mtu)};
}

}  // namespace penstock::drivers
