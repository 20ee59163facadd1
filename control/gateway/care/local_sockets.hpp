// Which L4 ports the host's own programs listen on, from /proc/net/{tcp,tcp6,udp,udp6}. Reading a line is pure.
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

// One line of such a file. Nullopt: no socket that waits for strangers (a TCP connection, a connected UDP socket, the heading), or none
// that we understand.
[[nodiscard]] std::optional<LocalListener> parse_socket_line(std::string_view line, Protocol protocol,
                                                             IpFamily family);

// Of this process's network namespace; those on loopback addresses are left out, since nobody reaches them from outside. `folder` has the
// four files; one that cannot be read has nobody in it. At most kListenersMax, so that a host with millions of sockets costs no more.
[[nodiscard]] std::vector<LocalListener> local_listeners(const std::string& folder = "/proc/self/net");
inline constexpr size_t kListenersMax = 100'000;

}  // namespace penstock::gateway
