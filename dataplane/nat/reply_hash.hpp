// SPDX-License-Identifier: Apache-2.0
// How the RSS of a NicPort selects a worker for received packets, as plain data. Drivers fill it from the
// configuration of the NIC that was requested, read back and checked. It makes the queue of a reply
// predictable, so that SNAT ports can be chosen for replies that arrive at the owner worker
// (docs/architecture.md).
//
//   frame --Toeplitz(key, addresses and L4 ports as on the wire)--> hash
//   hash  --% size--> RETA entry --> queue --> worker
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
    // As stored in the NIC; 40 bytes or more, of which IPv6 with ports uses 36 + 4.
    std::vector<uint8_t> key;
    // By hash % size: the RETA, with the worker that polls each queue. The size is a power of two.
    std::vector<WorkerId> worker_of;
    // The packet types with a hash that covers both addresses and both L4 ports. Replies of other types are
    // handed off.
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

// Maximum useful number of table entries: several times that of any known NIC. Each entry costs a worker 16
// bytes (reply_rules.hpp).
inline constexpr uint32_t kReplyHashEntriesMax = 4'096;

// The reason why SNAT ports cannot be chosen by this hash for this number of workers; it continues the text
// "its RSS cannot be used: ". "" if they can. Besides malformed data, the reason may be that a worker would
// own too few SNAT ports. It must own at least half of an even share towards every endpoint.
[[nodiscard]] std::string obstacle_of(const ReplyHash& hash, uint32_t workers);

// The worker that receives a packet with this tuple, as on the wire. The hash must have no obstacle and cover
// the packet. Builds its tables at each call; workers use a ReplyRule instead.
[[nodiscard]] WorkerId worker_of(const ReplyHash& hash, const packet::FlowKey& as_received);

}  // namespace penstock::nat
