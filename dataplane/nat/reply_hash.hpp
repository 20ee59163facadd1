// How the RSS of a NicPort chooses a worker for what it receives: plain data, filled by drivers from what the NIC was asked, read and
// checked to do. With it the queue of a reply can be foretold, and SNAT ports be chosen so that replies come home (docs/architecture.md).
//
//   frame --Toeplitz(key, addresses and L4 ports as on the wire)--> hash --% size--> RETA entry --> queue --> worker
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dataplane/base/ids.hpp"
#include "dataplane/base/ip.hpp"
#include "dataplane/base/protocol.hpp"
#include "dataplane/packet/flow_key.hpp"

namespace penstock::nat {

struct ReplyHash {
    std::vector<uint8_t> key;  // as the NIC holds it; 40 bytes or more, of which IPv6 with ports uses 36 + 4
    std::vector<WorkerId>
        worker_of;  // by hash % size: the RETA, with the worker that polls each queue; a power of two
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

// Entries of the largest table that is of use: several times those of any NIC known. Each costs a worker 16 bytes (reply_rules.hpp).
inline constexpr uint32_t kReplyHashEntriesMax = 4'096;

// Why SNAT ports cannot be chosen by this hash for that many workers, in words that follow "its RSS cannot be used: "; "" where they can.
// Besides what is malformed: a worker must own SNAT ports towards every endpoint, and not less than half of an even share.
[[nodiscard]] std::string obstacle_of(const ReplyHash& hash, uint32_t workers);

// The worker that a packet with this tuple, as it is on the wire, is received by; of a hash without an obstacle that covers the packet.
// Makes its tables anew at each call: workers ask a ReplyRule.
[[nodiscard]] WorkerId worker_of(const ReplyHash& hash, const packet::FlowKey& as_received);

}  // namespace penstock::nat
