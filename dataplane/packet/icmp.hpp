// ICMP and ICMPv6 errors, built in the buffer of the packet that they are about.
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
    uint32_t rest = 0;  // the header's second word: an MTU where there is one to tell
};
[[nodiscard]] constexpr IcmpError port_unreachable(IpFamily family) noexcept {
    return family == IpFamily::V4 ? IcmpError{3, 3} : IcmpError{1, 4};  // RFC 792; RFC 4443, 3.1
}

// With the MTU of the link that the packet does not fit. RFC 1191, 4 has it in the lower half of a word whose upper half is zero; RFC 4443,
// 3.2 in the whole word.
[[nodiscard]] constexpr IcmpError packet_too_big(IpFamily family, uint16_t mtu) noexcept {
    return family == IpFamily::V4 ? IcmpError{3, 4, mtu} : IcmpError{2, 0, mtu};
}
// In transit (RFC 792; RFC 4443, 3.3).
[[nodiscard]] constexpr IcmpError time_exceeded(IpFamily family) noexcept {
    return family == IpFamily::V4 ? IcmpError{11, 0} : IcmpError{3, 0};
}

// The longest ICMP error as an IP packet: what every host must be able to take (RFC 1812, 4.3.2.3), or what every link carries (RFC 4443,
// 2.4 c).
[[nodiscard]] constexpr uint16_t icmp_error_bytes_max(IpFamily family) noexcept {
    return family == IpFamily::V4 ? 576 : 1280;
}

// Makes of the IP packet in the first `frame_bytes` of `buffer` an error of its family from `source` to the packet's sender, quoting as
// much of the packet as fits into icmp_error_bytes_max and into the buffer, whose whole size may be used. The Ethernet addresses are
// exchanged; the forward stage sets the real ones. Type and code are the caller's choice; its duty is that the packet may be answered at
// all (reject.hpp). RejectNotAllowed where not even all IP headers and 8 bytes behind them fit (RFC 792) or exist.
[[nodiscard]] AnswerResult make_icmp_error(std::span<uint8_t> buffer, size_t frame_bytes,
                                           const Parsed& parsed, IcmpError error,
                                           const IpAddr& source) noexcept;

}  // namespace penstock::packet
