// SPDX-License-Identifier: Apache-2.0
// Device arguments that are derived so that the operator need not compute them: queue pairs from the workers,
// ring geometry from the MTU. Given arguments are kept, and refused by name if they contradict the MTU. Pure;
// one file for each PMD that has such arguments.
#pragma once

#include <cstdint>
#include <optional>

#include "dataplane/base/ip.hpp"
#include "dataplane/base/result.hpp"
#include "drivers/eal/device_string.hpp"

namespace penstock::drivers {

struct CompletionFacts {
    unsigned queues = 1;              // requested: one pair for each worker
    uint16_t mtu = 1500;              // IP bytes
    unsigned interface_channels = 0;  // combined channels of the Linux interface below it; 0: none reported
    // Of the same port in a former process, for drivers that would choose one at random.
    std::optional<MacAddr> mac = std::nullopt;
};

// Room for one received frame in its mbuf, without headroom. At least the frame; some PMDs require their
// whole ring slot.
struct CompletionResult {
    uint32_t buffer_bytes = 0;
};

// The IP bytes plus an Ethernet header and two VLAN tags.
[[nodiscard]] constexpr uint32_t frame_bytes(uint16_t mtu) noexcept {
    return uint32_t{mtu} + 14 + 8;
}

// Completes the arguments of any device. Devices of drivers without a function below are left unchanged.
[[nodiscard]] Result<CompletionResult> complete_device(DeviceString& device, const CompletionFacts& facts);

[[nodiscard]] Result<CompletionResult> complete_af_packet(DeviceString& device, const CompletionFacts& facts);
[[nodiscard]] Result<CompletionResult> complete_af_xdp(DeviceString& device, const CompletionFacts& facts);
[[nodiscard]] Result<CompletionResult> complete_memif(DeviceString& device, const CompletionFacts& facts);

// The number in argument `key`, or `otherwise` if it is absent. InvalidArgument: not a number greater than 0.
[[nodiscard]] Result<uint32_t> number_argument(const DeviceString& device, const char* key,
                                               uint32_t otherwise);

}  // namespace penstock::drivers
