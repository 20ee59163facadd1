// SPDX-License-Identifier: Apache-2.0
// net_memif: shared memory between two processes. Its buffers have one size, 2,048 bytes by default (bsize).
// The side that creates the region determines it. A frame larger than a buffer takes several, which is
// slower, so the size follows the MTU.
#include <algorithm>
#include <bit>

#include "drivers/pmd/completion.hpp"

namespace penstock::drivers {

Result<CompletionResult> complete_memif(DeviceString& device, const CompletionFacts& facts) {
    const uint32_t frame = frame_bytes(facts.mtu);
    constexpr uint32_t kBufferDefault = 2048;  // ETH_MEMIF_DEFAULT_PKT_BUFFER_SIZE
    if (frame > kBufferDefault) {
        // bsize is stored in 16 bits.
        device.complete("bsize", std::to_string(std::min(std::bit_ceil(frame), uint32_t{UINT16_MAX})));
    }
    return CompletionResult{frame};
}

}  // namespace penstock::drivers
