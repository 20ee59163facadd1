// SPDX-License-Identifier: Apache-2.0
// Metadata passed with a packet from its receiver to the worker that owns its flow: a few bits in the mbuf.
// The owner reads the frame again, because it needs the frame's cache lines anyway, and a Parsed would occupy
// another line that travels between the cores. It does not validate a common packet again.
#pragma once

#include <cstdint>

#include "dataplane/base/ids.hpp"
#include "dataplane/base/limits.hpp"

namespace penstock::pipeline {

// A packet handed over this often is looping: two candidate owners and a configuration that changed meanwhile
// explain three handoffs, and an ICMP error may also visit every worker (placement.hpp). A flow of
// MovedFlows, or a copy (take_over.hpp), explains two more handoffs; there are at least two workers then.
[[nodiscard]] constexpr uint32_t handoffs_max(uint32_t workers) noexcept {
    return 3 + workers;
}
static_assert(handoffs_max(limits::kWorkersMax) <= 0xff, "HandoffNote counts in a byte");

// A datagram in a worker's FragmentTable.
using DatagramIndex = Id<struct DatagramTag, uint16_t>;

// Values of HandoffNote.tried beyond all candidates, for flows of MovedFlows and for copies. The packet is
// looked up on this worker, whatever its candidates are.
// this worker is the one that MovedFlows names, or the owner of the copy
inline constexpr uint8_t kTriesMoved = 0xff;
// That worker has no such connection. Its last candidate, this worker, may open one.
inline constexpr uint8_t kBackFromMoved = 0xfe;

struct HandoffNote {
    uint8_t tried = 0;     // candidates visited before, in turn (placement.hpp)
    uint8_t handoffs = 0;  // rings crossed
    WorkerId receiver{0};  // the worker on whose receive queue it arrived
    bool ip_checksum_checked = false;
    // sent by Linux through the twin of arrival's port: transmitted unchanged if it belongs to no flow
    bool from_host = false;
    // A worker has validated the frame, accepted its Ethernet addresses, and found it to be a common packet
    // (packet::is_common()) from the wire.
    bool is_common = false;
    // The fragment has waited on this worker for the first fragment of this datagram, and keeps the datagram
    // in the table until it is served (fragment_table.hpp). Not passed on in a handoff.
    DatagramIndex waited_for;

    [[nodiscard]] constexpr bool has_waited() const noexcept { return waited_for.is_set(); }
    // The note as it arrives on the next worker. A packet with a bad IPv4 header is dropped by classify, and
    // no stage before a handoff changes the header.
    [[nodiscard]] constexpr HandoffNote crossing() const noexcept {
        HandoffNote next = unpacked(packed());
        ++next.handoffs;
        next.ip_checksum_checked = true;
        return next;
    }

    [[nodiscard]] constexpr uint32_t packed() const noexcept {
        return uint32_t{tried} | uint32_t{handoffs} << 8 | uint32_t{receiver.value} << 16 |
               uint32_t{ip_checksum_checked} << 24 | uint32_t{from_host} << 25 | uint32_t{is_common} << 26;
    }
    static constexpr HandoffNote unpacked(uint32_t bits) noexcept {
        return {static_cast<uint8_t>(bits),
                static_cast<uint8_t>(bits >> 8),
                WorkerId{static_cast<uint8_t>(bits >> 16)},
                (bits >> 24 & 1) != 0,
                (bits >> 25 & 1) != 0,
                (bits >> 26 & 1) != 0};
    }
};

}  // namespace penstock::pipeline
