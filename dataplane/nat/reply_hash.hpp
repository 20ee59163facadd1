// How the RSS of a NicPort chooses a worker for what it receives: plain data, filled by drivers from what the NIC was asked, read and
// checked to do. With it the queue of a reply can be foretold, and SNAT ports be chosen so that replies come home (docs/architecture.md).
//
//   frame --Toeplitz(key, addresses and L4 ports as on the wire)--> hash --% size--> RETA entry --> queue --> worker
#pragma once

#include <cstdint>
#include <vector>

#include "dataplane/base/ids.hpp"
#include "dataplane/base/ip.hpp"
#include "dataplane/base/protocol.hpp"

namespace penstock::nat {

struct ReplyHash {
    std::vector<uint8_t> key;         // as the NIC holds it; 40 bytes or more, of which IPv6 with ports uses 36 + 4
    std::vector<WorkerId> worker_of;  // by hash % size: the RETA, with the worker that polls each queue; a power of two
    // Whose hash covers both addresses and both L4 ports. Replies of other kinds are handed over.
    bool tcp4 = false, udp4 = false, tcp6 = false, udp6 = false;

    [[nodiscard]] constexpr bool covers(IpFamily family, Protocol protocol) const noexcept {
        switch (protocol) {
            case Protocol::Tcp:
                return family == IpFamily::V4 ? tcp4 : tcp6;
            case Protocol::Udp:
                return family == IpFamily::V4 ? udp4 : udp6;
            default:
                return false;
        }
    }
    bool operator==(const ReplyHash&) const = default;
};

}  // namespace penstock::nat
