// Refusing a flow aloud: a RST for TCP, ICMP or ICMPv6 port unreachable for UDP (REJ-002), built in the refused packet's own buffer and
// coming from the address that the client asked for.
#pragma once

#include <cstddef>
#include <span>

#include "dataplane/packet/icmp.hpp"
#include "dataplane/packet/parsed.hpp"

namespace penstock::packet {

// Makes of the untranslated Flow in the first `frame_bytes` of `buffer` its refusal; the buffer's whole size may be used. Ethernet
// addresses are exchanged; the forward stage sets the real ones. Rate limits are the caller's (REJ-003).
//
// Never answered, so that no answer can loop, multiply or hit a bystander:
//   RejectNotAllowed  a RST; a frame to or from a group's Ethernet address; whatever is no Flow (fragments, ICMP, multicast)
//   BadL4Checksum     a packet whose sender may not be whom it names: the full transport checksum is verified here, and only here
[[nodiscard]] AnswerResult make_reject(std::span<uint8_t> buffer, size_t frame_bytes, const Parsed& parsed) noexcept;

}  // namespace penstock::packet
