// SPDX-License-Identifier: Apache-2.0
// One end of a TCP connection that answers segments as RFC 9293, 3.10.7.4 and RFC 5961, 3 and 5 require,
// reduced to the behaviour needed for resets and independent of the code under test. Its input and output are
// whole frames.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "dataplane/packet/flow_key.hpp"
#include "dataplane/packet/parse.hpp"
#include "dataplane/packet/wire.hpp"
#include "tests/support/packet_builder.hpp"

namespace penstock::test {

class TcpPeer {
 public:
    // `key`: of the segments that it sends.
    TcpPeer(const packet::FlowKey& key, uint32_t snd_nxt, uint32_t rcv_nxt, uint32_t window = 65'535)
        : key_(key), snd_nxt_(snd_nxt), rcv_nxt_(rcv_nxt), window_(window) {}

    [[nodiscard]] bool is_reset() const { return is_reset_; }
    // The program has closed its socket and the stack has deleted the connection: each segment is answered by
    // a RST (RFC 9293, 3.10.7.1).
    void forget() { is_forgotten_ = true; }
    // The host is unreachable.
    void fall_silent() { is_silent_ = true; }
    // Returns a new segment, which may have a payload or a FIN ("FA").
    std::vector<uint8_t> send(const char* flags = "A", size_t payload_bytes = 0) {
        const std::vector<uint8_t> frame = segment(flags, payload_bytes);
        snd_nxt_ += static_cast<uint32_t>(payload_bytes) + (flags[0] == 'F' ? 1 : 0);
        return frame;
    }
    // Returns the answer to a segment, if any.
    std::optional<std::vector<uint8_t>> receive(const std::vector<uint8_t>& frame) {
        packet::Parsed parsed;
        if (is_reset_ || !packet::parse(frame, parsed) || parsed.key != key_.reversed()) {
            return std::nullopt;
        }
        const auto tcp = load<packet::TcpHeader>(frame.data() + parsed.l4_offset);
        if (tcp.checksum.host() != reference_l4_checksum(frame)) {
            return std::nullopt;
        }
        if (is_silent_) {
            return std::nullopt;
        }
        if (is_forgotten_) {
            return parsed.tcp_flags.has(packet::TcpFlags::kRst) ? std::nullopt
                                                                : std::optional(reset_at(tcp.ack.host()));
        }
        const uint32_t seq = tcp.seq.host();
        const auto payload =
            static_cast<uint32_t>(parsed.l3_offset + parsed.l3_length - parsed.payload_offset);
        const bool is_in_window =
            seq - rcv_nxt_ < window_ || (payload > 0 && seq + payload - 1 - rcv_nxt_ < window_);
        if (parsed.tcp_flags.has(packet::TcpFlags::kRst)) {
            if (!is_in_window) {
                return std::nullopt;
            }
            is_reset_ = seq == rcv_nxt_;
            return is_reset_ ? std::nullopt : std::optional(segment("A", 0));  // RFC 5961, 3.2: challenge ACK
        }
        if (!is_in_window) {
            return segment("A", 0);
        }
        if (static_cast<int32_t>(tcp.ack.host() - snd_nxt_) > 0) {
            return std::nullopt;  // Linux does not answer here; RFC 9293 requires an answer
        }
        if (seq == rcv_nxt_ && payload > 0) {
            rcv_nxt_ += payload;
            return segment("A", 0);
        }
        return std::nullopt;
    }

 private:
    [[nodiscard]] PacketBuilder header(const char* flags) const {
        PacketBuilder builder = eth();
        if (key_.source.is_v4()) {
            builder.ipv4(key_.source.to_string(), key_.destination.to_string());
        } else {
            builder.ipv6(key_.source.to_string(), key_.destination.to_string());
        }
        return builder.tcp(key_.source_port, key_.destination_port, flags);
    }
    [[nodiscard]] std::vector<uint8_t> reset_at(uint32_t seq) const { return header("R").seq(seq).build(); }
    [[nodiscard]] std::vector<uint8_t> segment(const char* flags, size_t payload_bytes) const {
        return header(flags)
            .seq(snd_nxt_)
            .ack(rcv_nxt_)
            .payload(std::vector<uint8_t>(payload_bytes, 0x55))
            .build();
    }

    packet::FlowKey key_;
    uint32_t snd_nxt_;
    uint32_t rcv_nxt_;
    uint32_t window_;
    bool is_reset_ = false;
    bool is_forgotten_ = false;
    bool is_silent_ = false;
};

}  // namespace penstock::test
