// SPDX-License-Identifier: Apache-2.0
// TCP segments that the gateway originates to terminate a connection that it forwards: RSTs, and probes. The
// answer to a probe shows which sequence number a RST must have (docs/adr/0017).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "dataplane/packet/flow_key.hpp"
#include "dataplane/packet/parsed.hpp"
#include "dataplane/packet/wire.hpp"

namespace penstock::packet {

inline constexpr size_t kBareSegmentBytesMax =
    sizeof(EthernetHeader) + sizeof(Ipv6Header) + sizeof(TcpHeader);

// Sequence numbers of probes. A receive window covers at most half of the sequence space (RFC 7323, 2.2), so
// of two probes half the space apart at least one is outside the window. The first probe is inside by chance
// with a probability of window / 2^32 (one in 65,536 for 64 KB). It then counts as an old ACK, which changes
// nothing.
inline constexpr uint32_t kFirstProbe = 0;
inline constexpr uint32_t kSecondProbe = 0x8000'0000;

// Sequence and ACK number of a segment, as its sender sees them.
struct SegmentNumbers {
    uint32_t seq = 0;
    uint32_t ack = 0;
    bool operator==(const SegmentNumbers&) const = default;
};

// For a received TCP segment: the sequence number behind it (SYN and FIN count one each), with which its
// sender will continue, and its ACK number.
[[nodiscard]] SegmentNumbers numbers_behind(const uint8_t* frame, const Parsed& parsed) noexcept;

// Writes a whole frame without payload to `frame`, which has room for kBareSegmentBytesMax. Ethernet
// addresses are zero; the next hop determines them. Returns its length.
uint16_t build_segment(std::span<uint8_t> frame, const FlowKey& key, SegmentNumbers numbers,
                       TcpFlags flags) noexcept;

}  // namespace penstock::packet
