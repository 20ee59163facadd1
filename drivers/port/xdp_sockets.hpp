// How the AF_XDP sockets of this process get their frames: the kernel shares buffers with the NIC (zero-copy) where its driver can, and
// copies otherwise. net_af_xdp asks for neither and gets what there is, without saying which; each socket knows.
#pragma once

#include <cstddef>

namespace penstock::drivers {

struct XdpSockets {
    size_t all = 0;
    size_t zero_copy = 0;
};

// Of this process, now. What a port has is the difference between before and after its queues were set up.
[[nodiscard]] XdpSockets count_xdp_sockets();

}  // namespace penstock::drivers
