// SPDX-License-Identifier: Apache-2.0
// SIGINT and SIGTERM as a readable file descriptor, for commands that end what they have begun.
#pragma once

#include <functional>
#include <thread>

namespace penstock::cli {

// While it exists, the two signals make fd() readable instead of ending the process. One at a time.
class Interrupt {
 public:
    Interrupt();
    ~Interrupt();
    Interrupt(const Interrupt&) = delete;
    Interrupt& operator=(const Interrupt&) = delete;
    [[nodiscard]] int fd() const noexcept;
};

// Calls `act` once on a thread of its own when `fd` becomes readable, unless the watch has ended before.
class ReadableWatch {
 public:
    ReadableWatch(int fd, std::function<void()> act);
    ~ReadableWatch();
    ReadableWatch(const ReadableWatch&) = delete;
    ReadableWatch& operator=(const ReadableWatch&) = delete;

 private:
    int end_;  // an eventfd
    std::thread thread_;
};

}  // namespace penstock::cli
