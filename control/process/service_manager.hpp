// SPDX-License-Identifier: Apache-2.0
// A daemon's end of the protocol of sd_notify(3): datagrams of "NAME=VALUE" lines to the socket that the
// service manager names in the environment. libsystemd is not used for it: it would load libraries for
// compression and encryption into a privileged process (docs/adr/0043). Not thread-safe, except send().
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

namespace penstock::process {

class ServiceManager {
 public:
    enum class Variables : uint8_t {
        Remove,  // for programs that this process starts, which must not report in its name
        Keep     // for a child that reports instead of this process
    };
    // From $NOTIFY_SOCKET, $WATCHDOG_USEC and $WATCHDOG_PID. Call before any thread exists: it changes the
    // environment. Without $NOTIFY_SOCKET, or with one that is no path and no abstract name, there is no
    // service manager, and send() has no effect.
    static ServiceManager from_environment(Variables variables = Variables::Remove);

    [[nodiscard]] bool is_present() const noexcept { return address_.has_value(); }
    // Longest time between two WATCHDOG=1 that the service manager accepts; 0: it expects none from this
    // process.
    [[nodiscard]] std::chrono::microseconds watchdog() const noexcept { return watchdog_; }

    // Sends one datagram. Never blocks. False: it was not sent, and may be repeated. Any thread.
    bool send(std::string_view lines) const noexcept;

 private:
    struct Address {
        sockaddr_un name{};
        socklen_t length = 0;
    };
    [[nodiscard]] static std::optional<Address> parse(std::string_view text) noexcept;

    std::optional<Address> address_;
    std::chrono::microseconds watchdog_{0};
};

}  // namespace penstock::process
