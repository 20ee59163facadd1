#include "dataplane/packet/rewrite.hpp"

#include "dataplane/base/check.hpp"
#include "dataplane/packet/checksum.hpp"
#include "dataplane/packet/wire.hpp"

namespace penstock::packet {
namespace {

// TTL and protocol share a checksum word, TTL in its high byte.
Be16 ttl_word(const Ipv4Header& ip) noexcept {
    return Be16::from_host(static_cast<uint16_t>(ip.ttl << 8 | ip.protocol));
}

void take_one_hop(Ipv4Header& ip, ChecksumDelta& delta) noexcept {
    PENSTOCK_ASSERT(ip.ttl > 1);
    const Be16 before = ttl_word(ip);
    --ip.ttl;
    delta.replace(before, ttl_word(ip));
}

}  // namespace

void apply(std::span<uint8_t> frame, const Parsed& parsed, const Rewrite& rewrite) noexcept {
    PENSTOCK_ASSERT(parsed.kind == PacketKind::Flow && parsed.payload_offset <= frame.size());
    uint8_t* const ip_at = frame.data() + parsed.l3_offset;
    auto ip = load<Ipv4Header>(ip_at);

    // The addresses are under both checksums: the transport's pseudo-header holds them.
    ChecksumDelta l4_delta;
    l4_delta.replace(ip.source, rewrite.source.v4_wire()).replace(ip.destination, rewrite.destination.v4_wire());
    ChecksumDelta ip_delta = l4_delta;
    take_one_hop(ip, ip_delta);
    ip.checksum = ip_delta.applied_to(ip.checksum);
    ip.source = rewrite.source.v4_wire();
    ip.destination = rewrite.destination.v4_wire();
    store(ip_at, ip);

    // TCP and UDP both begin with their ports.
    static_assert(offsetof(TcpHeader, destination_port) == offsetof(UdpHeader, destination_port));
    uint8_t* const l4_at = frame.data() + parsed.l4_offset;
    auto ports = load<std::array<Be16, 2>>(l4_at);
    const std::array<Be16, 2> new_ports{Be16::from_host(rewrite.source_port), Be16::from_host(rewrite.destination_port)};
    l4_delta.replace(ports[0], new_ports[0]).replace(ports[1], new_ports[1]);
    store(l4_at, new_ports);
    if (parsed.key.protocol == Protocol::Tcp) {
        uint8_t* const field = l4_at + offsetof(TcpHeader, checksum);
        store(field, l4_delta.applied_to(load<Be16>(field)));
    } else {
        uint8_t* const field = l4_at + offsetof(UdpHeader, checksum);
        store(field, udp_checksum_after(load<Be16>(field), l4_delta));
    }
}

void decrement_ttl(std::span<uint8_t> frame, const Parsed& parsed) noexcept {
    PENSTOCK_ASSERT(parsed.kind != PacketKind::Other && parsed.l4_offset <= frame.size());
    uint8_t* const ip_at = frame.data() + parsed.l3_offset;
    auto ip = load<Ipv4Header>(ip_at);
    ChecksumDelta delta;
    take_one_hop(ip, delta);
    ip.checksum = delta.applied_to(ip.checksum);
    store(ip_at, ip);
}

void set_ethernet(std::span<uint8_t> frame, const MacAddr& source, const MacAddr& destination) noexcept {
    PENSTOCK_ASSERT(frame.size() >= sizeof(EthernetHeader));
    store(frame.data() + offsetof(EthernetHeader, source), source);
    store(frame.data() + offsetof(EthernetHeader, destination), destination);
}

}  // namespace penstock::packet
