// SPDX-License-Identifier: Apache-2.0
// How the AF_XDP sockets of this process receive frames: the kernel shares buffers with the NIC (zero-copy)
// if its driver supports that, and copies otherwise. net_af_xdp requests neither mode and does not report
// which one it got. The mode can be read from each socket.
#pragma once

#include <cstddef>

namespace penstock::drivers {

struct XdpSockets {
    size_t all = 0;
    size_t zero_copy = 0;
};

// Counts the sockets of this process. The sockets of a port are the difference between before and after the
// setup of its queues.
[[nodiscard]] XdpSockets count_xdp_sockets();

}  // namespace penstock::drivers
