// TCP segments that the gateway makes up to end a connection that it only passes on: RSTs, and the probes that make a stack say which
// sequence number a RST must have (docs/adr/0017).
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

// Sequence numbers of probes. No receive window reaches over half of all sequence numbers (RFC 7323, 2.2), so of two probes that lie so far
// apart one at least is out of place. The first one is in place by chance for a window in 2^32, one in 65,536 with 64 KB; then it is an old
// ACK, which changes nothing.
inline constexpr uint32_t kFirstProbe = 0;
inline constexpr uint32_t kSecondProbe = 0x8000'0000;

// A segment's place in its connection, as its sender sees it.
struct SegmentNumbers {
    uint32_t seq = 0;
    uint32_t ack = 0;
    bool operator==(const SegmentNumbers&) const = default;
};

// Of a TCP segment that has arrived: the sequence number behind it (SYN and FIN count one each), which its sender will go on with, and its
// ACK number.
[[nodiscard]] SegmentNumbers numbers_behind(const uint8_t* frame, const Parsed& parsed) noexcept;

// Writes a whole frame without payload to `frame`, which has room for kBareSegmentBytesMax: zeros for Ethernet addresses, which the next
// hop decides. Returns its length.
uint16_t build_segment(std::span<uint8_t> frame, const FlowKey& key, SegmentNumbers numbers,
                       TcpFlags flags) noexcept;

}  // namespace penstock::packet
