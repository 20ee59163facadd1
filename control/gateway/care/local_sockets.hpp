// SPDX-License-Identifier: Apache-2.0
// The L4 ports on which programs of the host listen, from /proc/net/{tcp,tcp6,udp,udp6}. Parsing a line is
// pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/base/ip.hpp"
#include "dataplane/base/protocol.hpp"

namespace penstock::gateway {

struct LocalListener {
    Protocol protocol = Protocol::Tcp;
    IpAddr address;  // unspecified: all
    L4Port port = 0;
    auto operator<=>(const LocalListener&) const = default;
};

// Parses one line of such a file. Nullopt: not a socket that accepts packets from any peer (a TCP connection,
// a connected UDP socket, the header line), or not parseable.
[[nodiscard]] std::optional<LocalListener> parse_socket_line(std::string_view line, Protocol protocol,
                                                             IpFamily family);

// The listeners of this process's network namespace. Listeners on loopback addresses are omitted, since they
// are not reachable from outside. `folder` contains the four files; a file that cannot be read counts as
// empty. At most kListenersMax, which bounds the cost on hosts with millions of sockets.
[[nodiscard]] std::vector<LocalListener> local_listeners(const std::string& folder = "/proc/self/net");
inline constexpr size_t kListenersMax = 100'000;

}  // namespace penstock::gateway
