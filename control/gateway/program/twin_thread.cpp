// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/program/twin_thread.hpp"

#include <pthread.h>

namespace penstock::gateway {
namespace {

constexpr int kSleepMaxMs = 10;  // TwinIo sleeps at most 2 ms; this is only an upper bound

}  // namespace

std::jthread move_frames_of(drivers::TwinIo& twins) {
    return std::jthread([&twins](const std::stop_token& stop) {
        ::pthread_setname_np(::pthread_self(), "twin-io");
        while (!stop.stop_requested()) {
            twins.poll_once(kSleepMaxMs);
        }
    });
}

}  // namespace penstock::gateway
