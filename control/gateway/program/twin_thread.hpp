// SPDX-License-Identifier: Apache-2.0
// The twins' I/O on a thread of its own, while the main thread (ControlLoop) starts or ends other parts of
// the gateway. Without it, the sessions of a routing daemon would miss their keepalives in an upgrade.
#pragma once

#include <thread>

#include "drivers/host/twin_io.hpp"

namespace penstock::gateway {

// Moves frames until the thread is stopped, which takes a few milliseconds. Nothing else may use `twins`
// meanwhile.
[[nodiscard]] std::jthread move_frames_of(drivers::TwinIo& twins);

}  // namespace penstock::gateway
