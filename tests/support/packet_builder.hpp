// SPDX-License-Identifier: Apache-2.0
// Builder of frames for tests, in readable notation:
//
//     const std::vector<uint8_t> syn =
//         eth().ipv4("192.0.2.1", "80.11.12.10").ttl(63).tcp(40000, 80, "S").seq(1000).build();
//
// Lengths and checksums are correct unless a test sets them. The checksums are computed byte by byte,
// deliberately independent of dataplane/packet, so that both can be compared. to_scapy() returns the same
// packet in scapy notation, for pasting.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "dataplane/base/bytes.hpp"

namespace penstock::test {

// RFC 1071 in its simplest form, over any bytes. The value is in host order.
[[nodiscard]] uint16_t reference_checksum(ByteView bytes);
// The TCP, UDP or ICMPv6 checksum for the IP packet in `frame` (IP header at byte 14). Its own checksum field
// counts as 0.
[[nodiscard]] uint16_t reference_l4_checksum(ByteView frame);

// CRC32c bit by bit (RFC 9260, appendix A), in the form of SCTP's checksum field when loaded on this host.
[[nodiscard]] uint32_t reference_crc32c(ByteView bytes);

// A scapy line for any frame: Ether(bytes.fromhex("...")). For failures, when only the bytes are left.
[[nodiscard]] std::string to_scapy(ByteView frame);

namespace detail {
struct Ipv4Fields {
    std::string source, destination;
    uint8_t ttl = 64, tos = 0;
    uint16_t id = 1, flags_and_offset = 0;
    std::vector<uint8_t> options;
    std::optional<uint8_t> protocol;
    std::optional<uint16_t> total_length, checksum;
};
struct Ipv6Fields {
    std::string source, destination;
    uint8_t hop_limit = 64, traffic_class = 0;
    uint32_t flow_label = 0;
    std::vector<std::pair<uint8_t, std::vector<uint8_t>>>
        extensions;  // number, and the bytes after the next header's number
    std::optional<uint8_t> protocol;
    std::optional<uint16_t> payload_length;
};
}  // namespace detail

class PacketBuilder {
 public:
    // Ethernet. Both default to locally administered addresses, 02:00:00:00:00:01 -> 02:00:00:00:00:02.
    PacketBuilder& from_mac(std::string_view mac);
    PacketBuilder& to_mac(std::string_view mac);
    PacketBuilder& ether_type(
        uint16_t type);  // default: 0x0800 after ipv4(), 0x86dd after ipv6(), otherwise 0xffff

    // IPv4. The other setters of this group set fields of its header.
    PacketBuilder& ipv4(std::string_view source, std::string_view destination);
    PacketBuilder& ttl(uint8_t value);
    PacketBuilder& tos(uint8_t value);
    PacketBuilder& id(uint16_t value);
    PacketBuilder& dont_fragment();
    PacketBuilder& more_fragments();
    PacketBuilder& fragment_offset(uint16_t units_of_8_bytes);
    PacketBuilder& options(std::vector<uint8_t> bytes);  // padded to a whole word with end-of-list
    PacketBuilder& ip_protocol(uint8_t number);          // for payload() directly after the IP header
    PacketBuilder& ip_total_length(uint16_t wrong);
    PacketBuilder& ip_checksum(uint16_t wrong);

    // IPv6. The other setters of this group set fields of its headers; ip_protocol() and tos() (the traffic
    // class) apply to it too.
    PacketBuilder& ipv6(std::string_view source, std::string_view destination);
    PacketBuilder& hop_limit(uint8_t value);
    PacketBuilder& flow_label(uint32_t value);
    PacketBuilder& payload_length(uint16_t wrong);
    // Extension headers, in order. `behind` is the header without its first byte, the next header's number.
    PacketBuilder& extension(uint8_t number, std::vector<uint8_t> behind);
    PacketBuilder& hop_by_hop() {
        return extension(0, {0, 1, 4, 0, 0, 0, 0});
    }  // one PadN, as for the other options
    PacketBuilder& destination_options(uint8_t more_units = 0);
    PacketBuilder& routing(uint8_t type, uint8_t segments_left);
    PacketBuilder& fragment(uint16_t units_of_8_bytes, bool more);

    // Transport protocol, exactly one. `flags` in scapy's letters: FSRPAUEC.
    PacketBuilder& tcp(uint16_t source_port, uint16_t destination_port, std::string_view flags = "A");
    PacketBuilder& seq(uint32_t value);
    PacketBuilder& ack(uint32_t value);
    PacketBuilder& window(uint16_t value);
    PacketBuilder& tcp_options(std::vector<uint8_t> bytes);  // padded to a whole word with end-of-list
    PacketBuilder& udp(uint16_t source_port, uint16_t destination_port);
    PacketBuilder& udp_length(
        uint16_t value);  // shorter than the payload: the rest lies after the datagram, not summed
    PacketBuilder& icmp(uint8_t type, uint8_t code, uint32_t rest = 0);  // ICMPv6 over IPv6
    PacketBuilder& l4_checksum(uint16_t wrong);  // for UDP, 0 means no checksum was sent
    PacketBuilder& sctp(uint16_t source_port, uint16_t destination_port, uint32_t verification_tag);
    // Appends a chunk, padded to a whole word, which its length does not count. payload() follows the last
    // one.
    PacketBuilder& chunk(uint8_t type, std::vector<uint8_t> value = {}, uint8_t flags = 0,
                         std::optional<uint16_t> wrong_length = {});
    PacketBuilder& sctp_init(uint32_t initiate_tag) { return chunk(1, init_fields(initiate_tag)); }
    PacketBuilder& sctp_init_ack(uint32_t initiate_tag) { return chunk(2, init_fields(initiate_tag)); }
    PacketBuilder& sctp_checksum(uint32_t wrong);

    PacketBuilder& payload(std::string_view text);
    PacketBuilder& payload(std::vector<uint8_t> bytes);
    // Zeros after the IP packet up to a frame length, as a NIC pads to 60.
    PacketBuilder& pad_to(size_t frame_bytes);

    [[nodiscard]] std::vector<uint8_t> build() const;
    [[nodiscard]] std::string to_scapy() const;

 private:
    enum class L4 : uint8_t { None, Tcp, Udp, Icmp, Sctp };
    [[nodiscard]] static std::vector<uint8_t> init_fields(uint32_t initiate_tag);
    [[nodiscard]] std::vector<uint8_t> build_l4() const;
    [[nodiscard]] uint8_t l4_number() const;
    void put_ipv6(std::vector<uint8_t>& frame, size_t l4_bytes) const;

    std::string from_mac_ = "02:00:00:00:00:01", to_mac_ = "02:00:00:00:00:02";
    std::optional<uint16_t> ether_type_;
    std::optional<detail::Ipv4Fields> ip_;
    std::optional<detail::Ipv6Fields> ip6_;
    L4 l4_ = L4::None;
    uint16_t source_port_ = 0, destination_port_ = 0, window_ = 8192;
    uint32_t seq_ = 0, ack_ = 0, icmp_rest_ = 0;
    std::string tcp_flags_;
    std::vector<uint8_t> tcp_options_;
    uint8_t icmp_type_ = 0, icmp_code_ = 0;
    std::optional<uint16_t> udp_length_, l4_checksum_;
    uint32_t verification_tag_ = 0;
    std::vector<uint8_t> chunks_;
    std::optional<uint32_t> sctp_checksum_;
    std::vector<uint8_t> payload_;
    size_t pad_to_ = 0;
};

[[nodiscard]] inline PacketBuilder eth() {
    return {};
}

}  // namespace penstock::test
