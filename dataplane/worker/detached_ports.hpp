// SPDX-License-Identifier: Apache-2.0
// The NicPorts that workers must no longer touch, because their devices are gone. One bit each. A control
// thread sets the bit and then waits for a quiescent point of every worker (config::Publisher::has_passed),
// after which the device may be closed.
#pragma once

#include <atomic>
#include <cstdint>

#include "dataplane/base/ids.hpp"
#include "dataplane/base/limits.hpp"

namespace penstock::worker {

class DetachedPorts {
 public:
    static_assert(limits::kNicPortsMax <= 32);
    // Control threads. Pairs with read(): a worker that leaves a quiescent point requested afterwards sees
    // the change.
    void detach(NicPortId port) noexcept {
        bits_.fetch_or(uint32_t{1} << port.value, std::memory_order_release);
    }
    // Workers, once at the start of a round. Bit n is NicPort n.
    [[nodiscard]] uint32_t read() const noexcept { return bits_.load(std::memory_order_acquire); }
    [[nodiscard]] bool is_detached(NicPortId port) const noexcept { return (read() >> port.value & 1) != 0; }

 private:
    std::atomic<uint32_t> bits_{0};
};

}  // namespace penstock::worker
