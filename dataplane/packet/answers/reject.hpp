// SPDX-License-Identifier: Apache-2.0
// Rejection of a flow: a RST for TCP, ICMP or ICMPv6 port unreachable for UDP (REJ-002), either of port
// unreachable or ABORT for SCTP (REJ-004). The answer is built in the rejected packet's own buffer; its
// source is the address that the client addressed.
#pragma once

#include <cstddef>
#include <span>

#include "dataplane/packet/icmp.hpp"
#include "dataplane/packet/parsed.hpp"

namespace penstock::packet {

// Whether the transport checksum of the Flow in `frame` is valid, or none was sent. Checked only before an
// answer is built from a packet: the source address of a damaged packet cannot be trusted.
[[nodiscard]] bool has_valid_l4_checksum(ByteView frame, const Parsed& parsed) noexcept;

enum class SctpRefusal : uint8_t { Icmp, Abort };

// Turns the untranslated Flow in the first `frame_bytes` of `buffer` into its rejection; the buffer's whole
// size may be used. Ethernet addresses are exchanged; the forward stage sets the final ones. The caller
// applies rate limits (REJ-003).
//
// Packets that are never answered, so that no answer can loop, multiply or reach an uninvolved host:
// - RejectNotAllowed: a RST; an SCTP packet that is not an INIT, because only an INIT begins an association;
//   a frame to or from a multicast Ethernet address; anything that is not a Flow (fragments, ICMP,
//   multicast);
// - BadL4Checksum: the packet is damaged, so its source address may be wrong.
[[nodiscard]] AnswerResult make_reject(std::span<uint8_t> buffer, size_t frame_bytes, const Parsed& parsed,
                                       SctpRefusal sctp = SctpRefusal::Icmp) noexcept;

// The same for any packet of an association that was terminated: an ABORT that reflects the packet's own
// verification tag, so that its sender must accept it (RFC 9260, 8.4 and 8.5.1). RejectNotAllowed for an
// ABORT or a SHUTDOWN COMPLETE, for an INIT, which has no tag, and for frames to or from a multicast address.
[[nodiscard]] AnswerResult make_reflecting_abort(std::span<uint8_t> buffer, size_t frame_bytes,
                                                 const Parsed& parsed) noexcept;

}  // namespace penstock::packet
