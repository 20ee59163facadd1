// The arguments that an operator should not have to work out: queue pairs from the workers, ring geometry from the MTU. What was given is
// kept, and refused by name where it contradicts the MTU. Pure; one file for each PMD that has such arguments.
#pragma once

#include <cstdint>

#include "dataplane/base/result.hpp"
#include "drivers/eal/device_string.hpp"

namespace penstock::drivers {

struct CompletionFacts {
    unsigned queues = 1;  // wanted: one pair for each worker
    uint16_t mtu = 1500;  // IP bytes
    unsigned interface_channels =
        0;  // combined channels of the Linux interface underneath; 0: it reports none
};

// Room that one received frame needs in its mbuf, headroom excluded. At least the frame; some PMDs want their whole ring slot.
struct CompletionResult {
    uint32_t buffer_bytes = 0;
};

// Ethernet header and two VLAN tags on top of the IP bytes.
[[nodiscard]] constexpr uint32_t frame_bytes(uint16_t mtu) noexcept {
    return uint32_t{mtu} + 14 + 8;
}

// Completes the arguments of any device; those of drivers without a function below stay as they are.
[[nodiscard]] Result<CompletionResult> complete_device(DeviceString& device, const CompletionFacts& facts);

[[nodiscard]] Result<CompletionResult> complete_af_packet(DeviceString& device, const CompletionFacts& facts);
[[nodiscard]] Result<CompletionResult> complete_af_xdp(DeviceString& device, const CompletionFacts& facts);
[[nodiscard]] Result<CompletionResult> complete_memif(DeviceString& device, const CompletionFacts& facts);

// The number in argument `key`, or `otherwise` where it is absent. InvalidArgument: not a number greater than 0.
[[nodiscard]] Result<uint32_t> number_argument(const DeviceString& device, const char* key,
                                               uint32_t otherwise);

}  // namespace penstock::drivers
