// SPDX-License-Identifier: Apache-2.0
#include "tests/support/packet_builder.hpp"

#include <cstdio>

#include "dataplane/base/check.hpp"
#include "dataplane/base/ip.hpp"

namespace penstock::test {
namespace {

constexpr size_t kEtherBytes = 14;
constexpr uint16_t kDontFragment = 0x4000, kMoreFragments = 0x2000;
constexpr uint8_t kTcp = 6, kUdp = 17, kIcmp = 1, kIcmpv6 = 58, kSctp = 132;
constexpr size_t kSctpChecksumAt = 8;
constexpr uint8_t kHopByHop = 0, kRouting = 43, kFragment = 44, kDestinationOptions = 60;
constexpr std::string_view kFlagLetters = "FSRPAUEC";  // bit 0 first

void put16(std::vector<uint8_t>& to, size_t value) {
    to.push_back(static_cast<uint8_t>(value >> 8));
    to.push_back(static_cast<uint8_t>(value));
}
void put32(std::vector<uint8_t>& to, uint32_t value) {
    put16(to, value >> 16);
    put16(to, value & 0xffff);
}
void set16(std::vector<uint8_t>& in, size_t offset, uint16_t value) {
    in[offset] = static_cast<uint8_t>(value >> 8);
    in[offset + 1] = static_cast<uint8_t>(value);
}
void put(std::vector<uint8_t>& to, ByteView bytes) {
    to.insert(to.end(), bytes.begin(), bytes.end());
}

void put_v4(std::vector<uint8_t>& to, std::string_view text) {
    const Result<IpAddr> address = IpAddr::parse(text);
    PENSTOCK_CHECK(address.has_value() && address->is_v4());
    put(to, ByteView(address->bytes()).subspan(12));
}
void put_v6(std::vector<uint8_t>& to, std::string_view text) {
    // IpAddr::parse refuses mapped addresses, but tests must be able to send them.
    const bool is_mapped = text.starts_with("::ffff:") && text.find('.') != std::string_view::npos;
    if (is_mapped) {
        put(to, IpAddr::v4(0, 0, 0, 0).bytes());
        to.resize(to.size() - 4);
        return put_v4(to, text.substr(7));
    }
    const Result<IpAddr> address = IpAddr::parse(text);
    PENSTOCK_CHECK(address.has_value() && !address->is_v4());
    put(to, address->bytes());
}
void put_mac(std::vector<uint8_t>& to, std::string_view text) {
    const Result<MacAddr> mac = MacAddr::parse(text);
    PENSTOCK_CHECK(mac.has_value());
    put(to, mac->bytes);
}

std::vector<uint8_t> whole_words(std::vector<uint8_t> bytes) {
    while (bytes.size() % 4 != 0) {
        bytes.push_back(0);
    }
    PENSTOCK_CHECK(bytes.size() <= 40);  // a header of 15 words, less the fixed 5
    return bytes;
}

uint8_t flag_bits(std::string_view letters) {
    unsigned bits = 0;
    for (const char letter : letters) {
        const size_t bit = kFlagLetters.find(letter);
        PENSTOCK_CHECK(bit != std::string_view::npos);
        bits |= 1U << bit;
    }
    return static_cast<uint8_t>(bits);
}

std::string hex(ByteView bytes) {
    std::string text;
    for (const uint8_t byte : bytes) {
        char pair[3];
        std::snprintf(pair, sizeof pair, "%02x", byte);
        text += pair;
    }
    return text;
}
std::string in_hex(ByteView bytes) {
    return "bytes.fromhex(\"" + hex(bytes) + "\")";
}

// Offset of the checksum field in the transport header; 0 for a protocol without one here.
size_t checksum_offset(uint8_t protocol) {
    return protocol == kTcp ? 16 : protocol == kUdp ? 6 : protocol == kIcmpv6 ? 2 : 0;
}

// Input of a transport checksum: the addresses, the transport's number, and its bytes.
struct Summed {
    ByteView addresses;
    uint8_t protocol;
    ByteView l4;
};
Summed summed_of(ByteView ip) {
    if (ip[0] >> 4 == 4) {
        const size_t header = size_t{ip[0] & 0x0fU} * 4;
        const size_t total = size_t{ip[2]} << 8 | ip[3];
        return {ip.subspan(12, 8), ip[9], ip.subspan(header, total - header)};
    }
    const size_t end = 40 + (size_t{ip[4]} << 8 | ip[5]);
    size_t at = 40;
    uint8_t number = ip[6];
    while (number == kHopByHop || number == kRouting || number == kFragment ||
           number == kDestinationOptions) {
        const size_t bytes = number == kFragment ? 8 : (size_t{ip[at + 1]} + 1) * 8;
        number = ip[at];
        at += bytes;
    }
    return {ip.subspan(8, 32), number, ip.subspan(at, end - at)};
}

}  // namespace

uint16_t reference_checksum(ByteView bytes) {
    uint32_t sum = 0;
    for (size_t i = 0; i < bytes.size(); ++i) {
        sum += i % 2 == 0 ? uint32_t{bytes[i]} << 8 : bytes[i];
        sum = (sum & 0xffff) + (sum >> 16);
    }
    return static_cast<uint16_t>(~sum);
}

uint16_t reference_l4_checksum(ByteView frame) {
    const auto [addresses, protocol, whole_l4] = summed_of(frame.subspan(kEtherBytes));
    ByteView l4 = whole_l4;
    if (protocol == kUdp) {
        l4 = l4.first(size_t{l4[4]} << 8 |
                      l4[5]);  // bytes after a UDP datagram inside its IP packet are not summed
    }
    std::vector<uint8_t> summed;
    put(summed, addresses);
    put16(summed, protocol);
    put16(summed, l4.size());  // IPv6 has 32 bits for the length, of which 16 are 0 here
    const size_t l4_at = summed.size();
    put(summed, l4);
    set16(summed, l4_at + checksum_offset(protocol), 0);
    const uint16_t sum = reference_checksum(summed);
    return protocol == kUdp && sum == 0 ? 0xffff : sum;  // RFC 768
}

uint32_t reference_crc32c(ByteView bytes) {
    uint32_t crc = 0xffff'ffff;
    for (const uint8_t byte : bytes) {
        for (unsigned bit = 0; bit < 8; ++bit) {
            const bool carries = ((crc ^ (byte >> bit)) & 1) != 0;
            crc = (crc >> 1) ^ (carries ? 0x82f6'3b78U : 0);
        }
    }
    return ~crc;
}

std::string to_scapy(ByteView frame) {
    return "Ether(" + in_hex(frame) + ")";
}

PacketBuilder& PacketBuilder::from_mac(std::string_view mac) {
    return from_mac_ = mac, *this;
}
PacketBuilder& PacketBuilder::to_mac(std::string_view mac) {
    return to_mac_ = mac, *this;
}
PacketBuilder& PacketBuilder::ether_type(uint16_t type) {
    return ether_type_ = type, *this;
}

PacketBuilder& PacketBuilder::ipv4(std::string_view source, std::string_view destination) {
    ip_.emplace();
    ip_->source = source;
    ip_->destination = destination;
    return *this;
}
PacketBuilder& PacketBuilder::ttl(uint8_t value) {
    return ip_.value().ttl = value, *this;
}
PacketBuilder& PacketBuilder::tos(uint8_t value) {
    return (ip6_ ? ip6_->traffic_class : ip_.value().tos) = value, *this;
}
PacketBuilder& PacketBuilder::id(uint16_t value) {
    return ip_.value().id = value, *this;
}
PacketBuilder& PacketBuilder::dont_fragment() {
    return ip_.value().flags_and_offset |= kDontFragment, *this;
}
PacketBuilder& PacketBuilder::more_fragments() {
    return ip_.value().flags_and_offset |= kMoreFragments, *this;
}
PacketBuilder& PacketBuilder::fragment_offset(uint16_t units) {
    PENSTOCK_CHECK(units < 0x2000);
    return ip_.value().flags_and_offset |= units, *this;
}
PacketBuilder& PacketBuilder::options(std::vector<uint8_t> bytes) {
    return ip_.value().options = whole_words(std::move(bytes)), *this;
}
PacketBuilder& PacketBuilder::ip_protocol(uint8_t number) {
    return (ip6_ ? ip6_->protocol : ip_.value().protocol) = number, *this;
}
PacketBuilder& PacketBuilder::ip_total_length(uint16_t wrong) {
    return ip_.value().total_length = wrong, *this;
}
PacketBuilder& PacketBuilder::ip_checksum(uint16_t wrong) {
    return ip_.value().checksum = wrong, *this;
}

PacketBuilder& PacketBuilder::ipv6(std::string_view source, std::string_view destination) {
    ip6_.emplace();
    ip6_->source = source;
    ip6_->destination = destination;
    return *this;
}
PacketBuilder& PacketBuilder::hop_limit(uint8_t value) {
    return ip6_.value().hop_limit = value, *this;
}
PacketBuilder& PacketBuilder::flow_label(uint32_t value) {
    return ip6_.value().flow_label = value, *this;
}
PacketBuilder& PacketBuilder::payload_length(uint16_t wrong) {
    return ip6_.value().payload_length = wrong, *this;
}
PacketBuilder& PacketBuilder::extension(uint8_t number, std::vector<uint8_t> behind) {
    return ip6_.value().extensions.emplace_back(number, std::move(behind)), *this;
}
PacketBuilder& PacketBuilder::destination_options(uint8_t more_units) {
    std::vector<uint8_t> behind(7 + size_t{more_units} * 8, 0);  // all Pad1
    behind[0] = more_units;
    return extension(kDestinationOptions, std::move(behind));
}
PacketBuilder& PacketBuilder::routing(uint8_t type, uint8_t segments_left) {
    return extension(kRouting, {0, type, segments_left, 0, 0, 0, 0});
}
PacketBuilder& PacketBuilder::fragment(uint16_t units, bool more) {
    const auto field = static_cast<uint16_t>(units << 3 | (more ? 1 : 0));
    return extension(kFragment,
                     {0, static_cast<uint8_t>(field >> 8), static_cast<uint8_t>(field), 0, 0, 0x12, 0x34});
}

PacketBuilder& PacketBuilder::tcp(uint16_t source_port, uint16_t destination_port, std::string_view flags) {
    l4_ = L4::Tcp;
    source_port_ = source_port;
    destination_port_ = destination_port;
    tcp_flags_ = flags;
    // The sequence number after a SYN is 0, and every segment acknowledges 0: segments without explicit
    // numbers are consistent.
    seq_ = flags.find('S') == std::string_view::npos ? 0 : 0xffff'ffff;
    return *this;
}
PacketBuilder& PacketBuilder::seq(uint32_t value) {
    return seq_ = value, *this;
}
PacketBuilder& PacketBuilder::ack(uint32_t value) {
    return ack_ = value, *this;
}
PacketBuilder& PacketBuilder::window(uint16_t value) {
    return window_ = value, *this;
}
PacketBuilder& PacketBuilder::tcp_options(std::vector<uint8_t> bytes) {
    return tcp_options_ = whole_words(std::move(bytes)), *this;
}
PacketBuilder& PacketBuilder::udp(uint16_t source_port, uint16_t destination_port) {
    l4_ = L4::Udp;
    source_port_ = source_port;
    destination_port_ = destination_port;
    return *this;
}
PacketBuilder& PacketBuilder::udp_length(uint16_t wrong) {
    return udp_length_ = wrong, *this;
}
PacketBuilder& PacketBuilder::icmp(uint8_t type, uint8_t code, uint32_t rest) {
    l4_ = L4::Icmp;
    icmp_type_ = type;
    icmp_code_ = code;
    icmp_rest_ = rest;
    return *this;
}
PacketBuilder& PacketBuilder::l4_checksum(uint16_t wrong) {
    return l4_checksum_ = wrong, *this;
}

PacketBuilder& PacketBuilder::sctp(uint16_t source_port, uint16_t destination_port,
                                   uint32_t verification_tag) {
    l4_ = L4::Sctp;
    source_port_ = source_port;
    destination_port_ = destination_port;
    verification_tag_ = verification_tag;
    return *this;
}
PacketBuilder& PacketBuilder::chunk(uint8_t type, std::vector<uint8_t> value, uint8_t flags,
                                    std::optional<uint16_t> wrong_length) {
    chunks_.push_back(type);
    chunks_.push_back(flags);
    put16(chunks_, wrong_length.value_or(static_cast<uint16_t>(4 + value.size())));
    put(chunks_, value);
    chunks_.resize((chunks_.size() + 3) / 4 * 4);
    return *this;
}
std::vector<uint8_t> PacketBuilder::init_fields(uint32_t initiate_tag) {
    std::vector<uint8_t> fields;
    put32(fields, initiate_tag);
    put32(fields, 65536);  // receiver window
    put16(fields, 10);     // streams, outbound and inbound
    put16(fields, 10);
    put32(fields, 7);  // initial TSN
    return fields;
}
PacketBuilder& PacketBuilder::sctp_checksum(uint32_t wrong) {
    return sctp_checksum_ = wrong, *this;
}

PacketBuilder& PacketBuilder::payload(std::string_view text) {
    return payload_.assign(text.begin(), text.end()), *this;
}
PacketBuilder& PacketBuilder::payload(std::vector<uint8_t> bytes) {
    return payload_ = std::move(bytes), *this;
}
PacketBuilder& PacketBuilder::pad_to(size_t frame_bytes) {
    return pad_to_ = frame_bytes, *this;
}

// The transport header with a zero checksum, and the payload.
std::vector<uint8_t> PacketBuilder::build_l4() const {
    std::vector<uint8_t> l4;
    switch (l4_) {
        case L4::None:
            break;
        case L4::Tcp:
            put16(l4, source_port_);
            put16(l4, destination_port_);
            put32(l4, seq_);
            put32(l4, ack_);
            put16(l4, ((5 + tcp_options_.size() / 4) << 12) | flag_bits(tcp_flags_));
            put16(l4, window_);
            put32(l4, 0);  // checksum, urgent pointer
            put(l4, tcp_options_);
            break;
        case L4::Udp:
            put16(l4, source_port_);
            put16(l4, destination_port_);
            put16(l4, udp_length_.value_or(static_cast<uint16_t>(8 + payload_.size())));
            put16(l4, 0);
            break;
        case L4::Icmp:
            l4.push_back(icmp_type_);
            l4.push_back(icmp_code_);
            put16(l4, 0);
            put32(l4, icmp_rest_);
            break;
        case L4::Sctp:
            put16(l4, source_port_);
            put16(l4, destination_port_);
            put32(l4, verification_tag_);
            put32(l4, 0);
            put(l4, chunks_);
            break;
    }
    put(l4, payload_);
    return l4;
}

uint8_t PacketBuilder::l4_number() const {
    switch (l4_) {
        case L4::Tcp:
            return kTcp;
        case L4::Udp:
            return kUdp;
        case L4::Icmp:
            return ip6_ ? kIcmpv6 : kIcmp;
        case L4::Sctp:
            return kSctp;
        case L4::None:
            return 255;
    }
    return 255;
}

void PacketBuilder::put_ipv6(std::vector<uint8_t>& frame, size_t l4_bytes) const {
    const uint8_t protocol = ip6_->protocol.value_or(l4_number());
    const auto& extensions = ip6_->extensions;
    size_t payload = l4_bytes;
    for (const auto& [number, behind] : extensions) {
        payload += 1 + behind.size();
    }
    put32(frame, 0x6000'0000U | uint32_t{ip6_->traffic_class} << 20 | ip6_->flow_label);
    put16(frame, ip6_->payload_length.value_or(static_cast<uint16_t>(payload)));
    frame.push_back(extensions.empty() ? protocol : extensions.front().first);
    frame.push_back(ip6_->hop_limit);
    put_v6(frame, ip6_->source);
    put_v6(frame, ip6_->destination);
    for (size_t i = 0; i < extensions.size(); ++i) {
        frame.push_back(i + 1 < extensions.size() ? extensions[i + 1].first : protocol);
        put(frame, extensions[i].second);
    }
}

std::vector<uint8_t> PacketBuilder::build() const {
    std::vector<uint8_t> frame;
    put_mac(frame, to_mac_);
    put_mac(frame, from_mac_);
    put16(frame, ether_type_.value_or(ip_ ? 0x0800 : ip6_ ? 0x86dd : 0xffff));
    std::vector<uint8_t> l4 = build_l4();
    if (ip_) {
        const uint8_t protocol = ip_->protocol.value_or(l4_number());
        const size_t header = 20 + ip_->options.size();
        put16(frame, ((0x40 | header / 4) << 8) | ip_->tos);
        put16(frame, ip_->total_length.value_or(static_cast<uint16_t>(header + l4.size())));
        put16(frame, ip_->id);
        put16(frame, ip_->flags_and_offset);
        put16(frame, size_t{ip_->ttl} << 8 | protocol);
        put16(frame, 0);
        put_v4(frame, ip_->source);
        put_v4(frame, ip_->destination);
        put(frame, ip_->options);
        set16(frame, kEtherBytes + 10,
              ip_->checksum.value_or(reference_checksum(ByteView(frame).subspan(kEtherBytes))));
    }
    if (ip6_) {
        put_ipv6(frame, l4.size());
    }
    const size_t l4_offset = frame.size();
    put(frame, l4);
    const size_t udp_bytes = udp_length_.value_or(static_cast<uint16_t>(l4.size()));
    const size_t field = l4_ == L4::Tcp ? 16 : l4_ == L4::Udp ? 6 : 2;
    // If a test sets a wrong length so that bytes are missing, no checksum is computed: there is no correct
    // one.
    const bool has_whole_l4 =
        (ip_ && !ip_->total_length) || (ip6_ && !ip6_->payload_length && !ip6_->protocol);
    if (l4_ == L4::Sctp) {
        store(frame.data() + l4_offset + kSctpChecksumAt,
              sctp_checksum_.value_or(reference_crc32c(ByteView(frame).subspan(l4_offset))));
    } else if (l4_checksum_) {
        set16(frame, l4_offset + field, *l4_checksum_);
    } else if (l4_ == L4::Icmp && !ip6_) {
        set16(frame, l4_offset + field, reference_checksum(l4));
    } else if (l4_ != L4::None && has_whole_l4 &&
               (l4_ != L4::Udp || (udp_bytes >= 8 && udp_bytes <= l4.size()))) {
        set16(frame, l4_offset + field, reference_l4_checksum(frame));
    }
    if (frame.size() < pad_to_) {
        frame.resize(pad_to_);
    }
    return frame;
}

std::string PacketBuilder::to_scapy() const {
    if (ip6_ || l4_ == L4::Sctp) {
        return test::to_scapy(
            build());  // extension headers and chunks are given as bytes, without scapy layers
    }
    std::string text = "Ether(src=\"" + from_mac_ + "\", dst=\"" + to_mac_ + "\"";
    if (ether_type_) {
        text += ", type=" + std::to_string(*ether_type_);
    }
    text += ")";
    if (ip_) {
        const auto& ip = *ip_;
        text += "/IP(src=\"" + ip.source + "\", dst=\"" + ip.destination +
                "\", ttl=" + std::to_string(ip.ttl) + ", tos=" + std::to_string(ip.tos) +
                ", id=" + std::to_string(ip.id) + ", flags=" + std::to_string(ip.flags_and_offset >> 13) +
                ", frag=" + std::to_string(ip.flags_and_offset & 0x1fff);
        if (!ip.options.empty()) {
            text += ", options=[IPOption(" + in_hex(ip.options) + ")]";
        }
        if (ip.protocol) {
            text += ", proto=" + std::to_string(*ip.protocol);
        }
        if (ip.total_length) {
            text += ", len=" + std::to_string(*ip.total_length);
        }
        if (ip.checksum) {
            text += ", chksum=" + std::to_string(*ip.checksum);
        }
        text += ")";
    }
    const std::string ports =
        "sport=" + std::to_string(source_port_) + ", dport=" + std::to_string(destination_port_);
    const std::string checksum = l4_checksum_ ? ", chksum=" + std::to_string(*l4_checksum_) : "";
    switch (l4_) {
        case L4::None:
        case L4::Sctp:  // see above
            break;
        case L4::Tcp:
            text += "/TCP(" + ports + ", flags=\"" + tcp_flags_ + "\", seq=" + std::to_string(seq_) +
                    ", ack=" + std::to_string(ack_) + ", window=" + std::to_string(window_) + checksum;
            if (!tcp_options_.empty()) {
                text += ", dataofs=" + std::to_string(5 + tcp_options_.size() / 4) + ")/Raw(" +
                        in_hex(tcp_options_);
            }
            text += ")";
            break;
        case L4::Udp:
            text += "/UDP(" + ports + (udp_length_ ? ", len=" + std::to_string(*udp_length_) : "") +
                    checksum + ")";
            break;
        case L4::Icmp: {
            // Given as bytes, including payload and checksum: scapy's fields after the ICMP checksum depend
            // on the type.
            const std::vector<uint8_t> frame = build();
            return text + "/ICMP(" +
                   in_hex(ByteView(frame).subspan(kEtherBytes + 20 + (ip_ ? ip_->options.size() : 0))) + ")";
        }
    }
    if (!payload_.empty()) {
        text += "/Raw(" + in_hex(payload_) + ")";
    }
    return text;
}

}  // namespace penstock::test
