// SPDX-License-Identifier: Apache-2.0
// Builds ICMP and ICMPv6 errors in the buffer of the packet that they quote.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>

#include "dataplane/base/ip.hpp"
#include "dataplane/base/verdict.hpp"
#include "dataplane/packet/parsed.hpp"

namespace penstock::packet {

// The new frame's length, or the reason why no answer was built (then the buffer is unchanged).
using AnswerResult = std::expected<uint16_t, DropReason>;

struct IcmpError {
    uint8_t type = 0;
    uint8_t code = 0;
    uint32_t rest = 0;  // the header's second word: the MTU, in errors that carry one
};
[[nodiscard]] constexpr IcmpError port_unreachable(IpFamily family) noexcept {
    return family == IpFamily::V4 ? IcmpError{3, 3} : IcmpError{1, 4};  // RFC 792; RFC 4443, 3.1
}

// Carries the MTU of the link that the packet exceeds: in the lower half of a word, the upper half being zero
// (RFC 1191, 4), or in the whole word (RFC 4443, 3.2).
[[nodiscard]] constexpr IcmpError packet_too_big(IpFamily family, uint16_t mtu) noexcept {
    return family == IpFamily::V4 ? IcmpError{3, 4, mtu} : IcmpError{2, 0, mtu};
}
// In transit (RFC 792; RFC 4443, 3.3).
[[nodiscard]] constexpr IcmpError time_exceeded(IpFamily family) noexcept {
    return family == IpFamily::V4 ? IcmpError{11, 0} : IcmpError{3, 0};
}

// Maximum size of an ICMP error as an IP packet: the size that every host must accept (RFC 1812, 4.3.2.3), or
// that every link must carry (RFC 4443, 2.4 c).
[[nodiscard]] constexpr uint16_t icmp_error_bytes_max(IpFamily family) noexcept {
    return family == IpFamily::V4 ? 576 : 1280;
}

// Replaces the IP packet in the first `frame_bytes` of `buffer` by an error of its family from `source` to
// the packet's sender. It quotes as much of the packet as fits into icmp_error_bytes_max and into the buffer.
// The whole size of the buffer may be used. The Ethernet addresses are exchanged; the forward stage sets the
// final ones. The caller chooses type and code, and must have checked that the packet may be answered at all
// (reject.hpp). RejectNotAllowed if all IP headers plus 8 bytes (RFC 792) do not exist or do not fit.
[[nodiscard]] AnswerResult make_icmp_error(std::span<uint8_t> buffer, size_t frame_bytes,
                                           const Parsed& parsed, IcmpError error,
                                           const IpAddr& source) noexcept;

}  // namespace penstock::packet
