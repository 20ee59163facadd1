// SPDX-License-Identifier: Apache-2.0
// The socket that net_memif with role=server listens on. The driver leaves it open when the last port on it
// is closed, so no other process can listen there until this one ends. It also refuses to start if a process
// that was killed has left the socket's file.
#pragma once

#include <optional>
#include <string>

#include "drivers/eal/device_string.hpp"

namespace penstock::drivers {

struct MemifSocket {
    std::string name;  // a path, or a name in the abstract namespace
    bool is_abstract = true;
    bool operator==(const MemifSocket&) const = default;
};

// Empty: the device does not listen.
[[nodiscard]] std::optional<MemifSocket> memif_listener_of(const DeviceString& device);
// Of this process, if it is open, after the ports on it are closed.
void close_left_open(const MemifSocket& socket);
// Removes the socket's file if no process listens on it.
void remove_stale_file(const MemifSocket& socket);

}  // namespace penstock::drivers
