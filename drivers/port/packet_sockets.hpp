// SPDX-License-Identifier: Apache-2.0
// Drops counted by the kernel because the ring of a packet socket was full. net_af_packet owns these sockets
// and does not read their statistics.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace penstock::drivers {

class PacketSockets {
 public:
    PacketSockets() = default;
    ~PacketSockets();
    PacketSockets(const PacketSockets&) = delete;
    PacketSockets& operator=(const PacketSockets&) = delete;

    // Finds the packet sockets of this process that are bound to the interface, and duplicates their
    // descriptors. The duplicates keep the sockets alive, so call release() before the device is stopped.
    void find(const std::string& interface);
    // Reads the counts a last time and closes the descriptors. dropped() then keeps its value.
    void release();

    // Drops so far do not count.
    void forget_dropped();

    // Drops since the first find(). Each reading resets the kernel's count, so this object must be the only
    // reader. One thread at a time.
    [[nodiscard]] uint64_t dropped();

 private:
    std::vector<int> sockets_;
    uint64_t dropped_ = 0;
};

}  // namespace penstock::drivers
