// SPDX-License-Identifier: Apache-2.0
#include "control/process/service_manager.hpp"

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include "dataplane/base/text.hpp"

namespace penstock::process {
namespace {

constexpr const char* kSocketVariable = "NOTIFY_SOCKET";
constexpr const char* kIntervalVariable = "WATCHDOG_USEC";
constexpr const char* kProcessVariable = "WATCHDOG_PID";

std::string_view variable(const char* name) {
    const char* const text = std::getenv(name);
    return text == nullptr ? std::string_view() : text;
}

// The interval counts only for the process that $WATCHDOG_PID names, or for each one if it is not set
// (sd_watchdog_enabled(3)).
std::chrono::microseconds watchdog_interval() {
    const auto process = variable(kProcessVariable);
    if (!process.empty() && whole_number<pid_t>(process) != getpid()) {
        return std::chrono::microseconds(0);
    }
    const auto interval =
        whole_number<int64_t>(variable(kIntervalVariable).empty() ? "0" : variable(kIntervalVariable));
    return std::chrono::microseconds(interval.value_or(0));
}

}  // namespace

std::optional<ServiceManager::Address> ServiceManager::parse(std::string_view text) noexcept {
    Address address;
    if (text.size() < 2 || text.size() >= sizeof(address.name.sun_path) ||
        (text[0] != '/' && text[0] != '@')) {
        return std::nullopt;
    }
    address.name.sun_family = AF_UNIX;
    std::memcpy(address.name.sun_path, text.data(), text.size());
    size_t length = offsetof(sockaddr_un, sun_path) + text.size();
    if (text[0] == '@') {
        address.name.sun_path[0] = '\0';  // an abstract name has no terminator
    } else {
        ++length;
    }
    address.length = static_cast<socklen_t>(length);
    return address;
}

ServiceManager ServiceManager::from_environment(Variables variables) {
    ServiceManager manager;
    manager.address_ = parse(variable(kSocketVariable));
    if (manager.address_) {
        manager.watchdog_ = watchdog_interval();
    }
    if (variables == Variables::Remove) {
        for (const char* const name : {kSocketVariable, kIntervalVariable, kProcessVariable}) {
            unsetenv(name);
        }
    }
    return manager;
}

// Not connected: a datagram of its own address each time also reaches a service manager that was started
// again.
bool ServiceManager::send(std::string_view lines) const noexcept {
    if (!address_) {
        return true;
    }
    const int fd = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        return false;
    }
    const ssize_t sent = ::sendto(fd, lines.data(), lines.size(), MSG_NOSIGNAL,
                                  reinterpret_cast<const sockaddr*>(&address_->name), address_->length);
    ::close(fd);
    return sent == static_cast<ssize_t>(lines.size());
}

}  // namespace penstock::process
