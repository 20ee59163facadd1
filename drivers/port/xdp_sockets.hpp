// SPDX-License-Identifier: Apache-2.0
// The AF_XDP sockets of this process. net_af_xdp does not report whether the kernel shares buffers with the
// NIC (zero-copy, if its driver supports that) or copies. The mode can be read from each socket. It also
// leaves its sockets open when a port is closed.
#pragma once

#include <sys/types.h>

#include <span>
#include <vector>

namespace penstock::drivers {

struct XdpSocket {
    int fd = -1;
    ino_t inode = 0;  // identifies the socket if its number is used again
    bool is_zero_copy = false;
};

// The sockets of this process. Those of a port are opened by the setup of its receive queues.
[[nodiscard]] std::vector<XdpSocket> xdp_sockets();
// Without those in `before`.
[[nodiscard]] std::vector<XdpSocket> xdp_sockets_since(std::span<const XdpSocket> before);
// Closes those that are still open.
void close_left_open(std::span<const XdpSocket> sockets);

}  // namespace penstock::drivers
