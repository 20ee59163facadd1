// SPDX-License-Identifier: Apache-2.0
// Sockets of the host from /proc/net/{tcp,tcp6,udp,udp6}, and the programs that hold them.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "control/host/root.hpp"
#include "dataplane/base/ip.hpp"
#include "dataplane/base/protocol.hpp"

namespace penstock::host {

// One line of such a file.
struct SocketRow {
    IpAddr address;  // local; unspecified: all
    L4Port port = 0;
    uint32_t state = 0;  // kTcpListen, kUdpUnconnected, ...
    uint64_t inode = 0;  // 0: the line has none
    bool operator==(const SocketRow&) const = default;
};

// The kernel's enum, include/net/tcp_states.h. UDP uses the same values: CLOSE means bound and not connected.
inline constexpr uint32_t kTcpListen = 10;
inline constexpr uint32_t kUdpUnconnected = 7;

// Nullopt: the header line, or not parseable. Pure.
[[nodiscard]] std::optional<SocketRow> parse_socket_row(std::string_view line, IpFamily family);

// The listening TCP sockets of this network namespace. Nullopt: neither file can be read.
[[nodiscard]] std::optional<std::vector<SocketRow>> listening_sockets(const Root& root);

// The inode of the unix socket that is bound to `path` in this network namespace; nullopt: none is.
[[nodiscard]] std::optional<uint64_t> unix_socket_at(const Root& root, std::string_view path);

struct Process {
    std::string pid;
    std::string name;  // /proc/PID/comm: at most 15 characters
};
// The process that has the socket open; nullopt: unknown, for example because it belongs to another user.
[[nodiscard]] std::optional<Process> owner_of_socket(const Root& root, uint64_t inode);
// The first process with this name that `accepts`, a predicate of its PID, if not null.
[[nodiscard]] std::optional<Process> find_process(
    const Root& root, std::string_view name, const std::function<bool(const std::string& pid)>& accepts = {});

}  // namespace penstock::host
