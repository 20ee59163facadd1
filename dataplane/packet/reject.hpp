// Refusing a flow aloud: a RST for TCP, ICMP or ICMPv6 port unreachable for UDP (REJ-002), the one or an ABORT for SCTP (REJ-004), built in
// the refused packet's own buffer and coming from the address that the client asked for.
#pragma once

#include <cstddef>
#include <span>

#include "dataplane/packet/icmp.hpp"
#include "dataplane/packet/parsed.hpp"

namespace penstock::packet {

// Whether the whole transport checksum of the Flow in `frame` is right, or none was sent. Before an answer is made from a packet, and only
// then: a damaged one may not be from whom it names.
[[nodiscard]] bool has_valid_l4_checksum(ByteView frame, const Parsed& parsed) noexcept;

enum class SctpRefusal : uint8_t { Icmp, Abort };

// Makes of the untranslated Flow in the first `frame_bytes` of `buffer` its refusal; the buffer's whole size may be used. Ethernet
// addresses are exchanged; the forward stage sets the real ones. Rate limits are the caller's (REJ-003).
//
// Never answered, so that no answer can loop, multiply or hit a bystander:
// - RejectNotAllowed: a RST; of SCTP what is no INIT, for nothing else begins an association; a frame to or from a group's Ethernet
//   address; whatever is no Flow (fragments, ICMP, multicast);
// - BadL4Checksum: a packet whose sender may not be whom it names.
[[nodiscard]] AnswerResult make_reject(std::span<uint8_t> buffer, size_t frame_bytes, const Parsed& parsed,
                                       SctpRefusal sctp = SctpRefusal::Icmp) noexcept;

// The same of any packet of an association that has been ended: an ABORT that reflects the packet's own verification tag, so that its
// sender must take it (RFC 9260, 8.4 and 8.5.1). RejectNotAllowed for an ABORT or a SHUTDOWN COMPLETE, for an INIT, which has no tag, and
// for frames to or from a group.
[[nodiscard]] AnswerResult make_reflecting_abort(std::span<uint8_t> buffer, size_t frame_bytes,
                                                 const Parsed& parsed) noexcept;

}  // namespace penstock::packet
