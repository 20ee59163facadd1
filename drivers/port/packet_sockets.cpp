// SPDX-License-Identifier: Apache-2.0
#include "drivers/port/packet_sockets.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>

namespace penstock::drivers {
namespace {

bool is_bound_to(int descriptor, int ifindex) {
    int domain = 0;
    socklen_t size = sizeof(domain);
    if (::getsockopt(descriptor, SOL_SOCKET, SO_DOMAIN, &domain, &size) != 0 || domain != AF_PACKET) {
        return false;
    }
    sockaddr_ll bound{};
    size = sizeof(bound);
    return ::getsockname(descriptor, reinterpret_cast<sockaddr*>(&bound), &size) == 0 &&
           bound.sll_ifindex == ifindex;
}

}  // namespace

void PacketSockets::find(const std::string& interface) {
    const int ifindex = static_cast<int>(::if_nametoindex(interface.c_str()));
    DIR* const descriptors = ifindex == 0 ? nullptr : ::opendir("/proc/self/fd");
    if (descriptors == nullptr) {
        return;
    }
    std::vector<int> theirs;
    while (const dirent* const entry = ::readdir(descriptors)) {
        const int descriptor = std::atoi(entry->d_name);  // "." and "..": 0, which is not a packet socket
        if (is_bound_to(descriptor, ifindex)) {
            theirs.push_back(descriptor);
        }
    }
    ::closedir(descriptors);
    for (const int descriptor : theirs) {
        if (const int own = ::fcntl(descriptor, F_DUPFD_CLOEXEC, 0); own >= 0) {
            sockets_.push_back(own);
        }
    }
    forget_dropped();  // drops before the start of the device do not count
}

void PacketSockets::forget_dropped() {
    const uint64_t before = dropped_;
    static_cast<void>(dropped());
    dropped_ = before;
}

void PacketSockets::release() {
    static_cast<void>(dropped());
    for (const int socket : sockets_) {
        ::close(socket);
    }
    sockets_.clear();
}

PacketSockets::~PacketSockets() {
    release();
}

uint64_t PacketSockets::dropped() {
    for (const int socket : sockets_) {
        tpacket_stats since{};
        socklen_t size = sizeof(since);
        if (::getsockopt(socket, SOL_PACKET, PACKET_STATISTICS, &since, &size) == 0) {
            dropped_ += since.tp_drops;
        }
    }
    return dropped_;
}

}  // namespace penstock::drivers
