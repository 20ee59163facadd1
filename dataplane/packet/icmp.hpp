// ICMP errors, built in the buffer of the packet that they are about.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>

#include "dataplane/base/ip.hpp"
#include "dataplane/base/verdict.hpp"
#include "dataplane/packet/parsed.hpp"

namespace penstock::packet {

// A new frame's length, or why none was made (then the buffer is as it was).
using AnswerResult = std::expected<uint16_t, DropReason>;

struct IcmpError {
    uint8_t type = 0;
    uint8_t code = 0;
};
inline constexpr IcmpError kPortUnreachable{3, 3};  // RFC 792

// The longest ICMP error as an IP packet: what every host must be able to take (RFC 1812, 4.3.2.3).
inline constexpr uint16_t kIcmpErrorBytesMax = 576;

// Makes of the IPv4 packet in the first `frame_bytes` of `buffer` an ICMP error from `source` to the packet's sender, quoting as much of
// the packet as fits into kIcmpErrorBytesMax and into the buffer, whose whole size may be used. The Ethernet addresses are exchanged; the
// forward stage sets the real ones. Type and code are the caller's choice; its duty is that the packet may be answered at all (reject.hpp).
// RejectNotAllowed where not even the IP header and 8 bytes behind it fit (RFC 792) or exist.
[[nodiscard]] AnswerResult make_icmp_error(std::span<uint8_t> buffer, size_t frame_bytes, const Parsed& parsed, IcmpError error,
                                           const IpAddr& source) noexcept;

}  // namespace penstock::packet
