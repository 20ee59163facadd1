// What the kernel dropped because the ring of a packet socket was full: net_af_packet owns such sockets and does not read their statistics.
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

    // Finds those of this process that are bound to the interface, and takes descriptors of its own for them, which keep the sockets alive:
    // release() comes before the device is stopped.
    void find(const std::string& interface);
    // Reads the count a last time. dropped() stays what it is then.
    void release();

    // Since the first find(). The kernel's count restarts with each reading, so nobody else may read it. One thread at a time.
    [[nodiscard]] uint64_t dropped();

 private:
    std::vector<int> sockets_;
    uint64_t dropped_ = 0;
};

}  // namespace penstock::drivers
