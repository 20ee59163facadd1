// SPDX-License-Identifier: Apache-2.0
#include "dataplane/packet/answers/reject.hpp"

#include <optional>

#include "dataplane/base/check.hpp"
#include "dataplane/packet/answers/answer.hpp"
#include "dataplane/packet/sctp.hpp"

namespace penstock::packet {

bool has_valid_l4_checksum(ByteView frame, const Parsed& parsed) noexcept {
    if (parsed.is_fragment) {
        return true;  // the checksum covers the whole datagram: only the receiver can verify it
    }
    if (parsed.key.protocol == Protocol::Sctp) {
        return has_valid_sctp_checksum(frame.subspan(parsed.l4_offset, sctp_bytes(parsed)));
    }
    auto l4_bytes = static_cast<uint16_t>(parsed.l3_length - (parsed.l4_offset - parsed.l3_offset));
    if (parsed.key.protocol == Protocol::Udp) {
        const auto udp = load<UdpHeader>(frame.data() + parsed.l4_offset);
        if (udp.checksum.raw() == 0) {
            return true;  // none was sent (RFC 768); over IPv6 the parser has rejected such a datagram
        }
        PENSTOCK_ASSERT(udp.length.host() <= l4_bytes);  // checked by the parser
        l4_bytes = udp.length.host();
    }
    return ChecksumSum()
        .add_pseudo_header(parsed.key.source, parsed.key.destination, parsed.ip_protocol, l4_bytes)
        .add(frame.subspan(parsed.l4_offset, l4_bytes))
        .is_valid();
}

namespace {

// The RST of a closed port (RFC 9293, 3.10.7.1). To a segment with ACK: a RST with that ACK number as its
// sequence number. To any other: a RST that acknowledges all of its sequence space, SYN and FIN counting one
// each.
TcpHeader reset_for(const TcpHeader& tcp, uint16_t payload_bytes) noexcept {
    const TcpFlags flags{tcp.flags};
    TcpHeader rst;
    rst.source_port = tcp.destination_port;
    rst.destination_port = tcp.source_port;
    if (flags.has(TcpFlags::kAck)) {
        rst.flags = TcpFlags::kRst;
        rst.seq = tcp.ack;
        return rst;
    }
    const uint32_t occupied =
        payload_bytes + (flags.has(TcpFlags::kSyn) ? 1U : 0U) + (flags.has(TcpFlags::kFin) ? 1U : 0U);
    rst.flags = TcpFlags::kRst | TcpFlags::kAck;
    rst.ack = Be32::from_host(tcp.seq.host() + occupied);
    return rst;
}

// The result always fits: the packet that it replaces had both headers too.
uint16_t make_reset(std::span<uint8_t> buffer, const Parsed& parsed) noexcept {
    const uint16_t ip_header_bytes = answer_header_bytes(parsed.family);
    const IpAddr &source = parsed.key.destination, &destination = parsed.key.source;
    const auto payload_bytes =
        static_cast<uint16_t>(parsed.l3_offset + parsed.l3_length - parsed.payload_offset);
    TcpHeader rst = reset_for(load<TcpHeader>(buffer.data() + parsed.l4_offset), payload_bytes);

    uint8_t* const rst_at = buffer.data() + parsed.l3_offset + ip_header_bytes;
    store(rst_at, rst);
    rst.checksum = ChecksumSum()
                       .add_pseudo_header(source, destination, parsed.ip_protocol, sizeof rst)
                       .add(ByteView(rst_at, sizeof rst))
                       .checksum();
    store(rst_at, rst);
    store_answer_header(buffer.data() + parsed.l3_offset, source, destination, parsed.ip_protocol, 0,
                        sizeof rst);
    exchange_ethernet(buffer);
    return static_cast<uint16_t>(parsed.l3_offset + ip_header_bytes + sizeof rst);
}

// The result always fits, as in make_reset().
uint16_t make_abort(std::span<uint8_t> buffer, const Parsed& parsed, uint32_t tag, uint8_t flags) noexcept {
    const uint16_t ip_header_bytes = answer_header_bytes(parsed.family);
    const FlowKey key = parsed.key.reversed();
    store_abort(buffer.data() + parsed.l3_offset + ip_header_bytes, key.source_port, key.destination_port,
                tag, flags);
    store_answer_header(buffer.data() + parsed.l3_offset, key.source, key.destination, parsed.ip_protocol, 0,
                        kAbortBytes);
    exchange_ethernet(buffer);
    return static_cast<uint16_t>(parsed.l3_offset + ip_header_bytes + kAbortBytes);
}

// Why no answer of any kind may be sent to the sender of a Flow; empty if one may.
std::optional<DropReason> why_unanswered(std::span<uint8_t> buffer, size_t frame_bytes,
                                         const Parsed& parsed) noexcept {
    // The checksum of a fragment cannot be verified.
    if (parsed.kind != PacketKind::Flow || parsed.is_fragment || parsed.destination_is_multicast_mac) {
        return DropReason::RejectNotAllowed;
    }
    PENSTOCK_ASSERT(frame_bytes <= buffer.size() &&
                    size_t{parsed.l3_offset} + parsed.l3_length <= frame_bytes);
    if (load<EthernetHeader>(buffer.data()).source.is_multicast()) {
        return DropReason::RejectNotAllowed;
    }
    return has_valid_l4_checksum(buffer.first(frame_bytes), parsed)
               ? std::nullopt
               : std::optional(DropReason::BadL4Checksum);
}

}  // namespace

AnswerResult make_reject(std::span<uint8_t> buffer, size_t frame_bytes, const Parsed& parsed,
                         SctpRefusal sctp) noexcept {
    const bool is_sctp = parsed.key.protocol == Protocol::Sctp;
    if (parsed.tcp_flags.has(TcpFlags::kRst) || (is_sctp && parsed.sctp_event != SctpEvent::Init)) {
        return std::unexpected(DropReason::RejectNotAllowed);
    }
    if (const std::optional<DropReason> why = why_unanswered(buffer, frame_bytes, parsed)) {
        return std::unexpected(*why);
    }
    if (parsed.key.protocol == Protocol::Tcp) {
        return make_reset(buffer, parsed);
    }
    if (is_sctp && sctp == SctpRefusal::Abort) {
        return make_abort(buffer, parsed, initiate_tag(buffer.data(), parsed), 0);
    }
    return make_icmp_error(buffer, frame_bytes, parsed, port_unreachable(parsed.family),
                           parsed.key.destination);
}

AnswerResult make_reflecting_abort(std::span<uint8_t> buffer, size_t frame_bytes,
                                   const Parsed& parsed) noexcept {
    const SctpEvent event = parsed.sctp_event;
    if (event == SctpEvent::Abort || event == SctpEvent::ShutdownComplete || event == SctpEvent::Init) {
        return std::unexpected(DropReason::RejectNotAllowed);
    }
    if (const std::optional<DropReason> why = why_unanswered(buffer, frame_bytes, parsed)) {
        return std::unexpected(*why);
    }
    return make_abort(buffer, parsed, verification_tag(buffer.data(), parsed), SctpChunkHeader::kReflectsTag);
}

}  // namespace penstock::packet
