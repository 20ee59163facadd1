// SPDX-License-Identifier: Apache-2.0
#include "dataplane/packet/rewrite.hpp"

namespace penstock::packet {
namespace {

// In checksums an IPv4 address may be used as sixteen bytes: its prefix ::ffff:0:0 adds 0xffff, which is zero
// in one's-complement arithmetic.
template <typename Address>
Address wire_address(const IpAddr& address) noexcept {
    if constexpr (std::is_same_v<Address, Be32>) {
        PENSTOCK_ASSERT(address.is_v4());
        return address.v4_wire();
    } else {
        return address.bytes();
    }
}

template <typename Address>
WireEndpoints<Address> wire_endpoints(const IpAddr& source, const IpAddr& destination, L4Port source_port,
                                      L4Port destination_port) noexcept {
    return {wire_address<Address>(source), wire_address<Address>(destination), Be16::from_host(source_port),
            Be16::from_host(destination_port)};
}

// Called for every new flow: one comparison less than two calls of is_v4().
bool are_both_v4(const IpAddr& one, const IpAddr& other) noexcept {
    const auto first_half = [](const IpAddr& address) { return load<uint64_t>(address.bytes().data()); };
    const auto is_mapped = [](const IpAddr& address) {
        return load<uint32_t>(address.bytes().data() + 8) == 0xffff'0000;
    };
    return (first_half(one) | first_half(other)) == 0 && is_mapped(one) && is_mapped(other);
}

// Both ports in one word. A sum is independent of word boundaries and of the order, so the order in memory is
// used.
Be32 ports_word(L4Port source, L4Port destination) noexcept {
    return Be32::from_host(uint32_t{destination} << 16 | source);
}

template <typename Address>
TranslationDeltas deltas_between(const FlowKey& before, const Rewrite& after) noexcept {
    ChecksumDelta delta;
    delta.replace(wire_address<Address>(before.source), wire_address<Address>(after.source));
    delta.replace(wire_address<Address>(before.destination), wire_address<Address>(after.destination));
    TranslationDeltas deltas;
    if constexpr (std::is_same_v<Address, Be32>) {
        deltas.ip = FoldedDelta(delta);
    }
    delta.replace(ports_word(before.source_port, before.destination_port),
                  ports_word(after.source_port, after.destination_port));
    deltas.l4 = FoldedDelta(delta);
    return deltas;
}

template <typename Address>
void apply_to(std::span<uint8_t> frame, const Parsed& parsed, const Rewrite& rewrite) noexcept {
    using Header = std::conditional_t<std::is_same_v<Address, Be32>, Ipv4Header, Ipv6Header>;
    const auto ip = load<Header>(frame.data() + parsed.l3_offset);
    const auto ports = load<std::array<Be16, 2>>(frame.data() + parsed.l4_offset);
    const WireEndpoints<Address> before{ip.source, ip.destination, ports[0], ports[1]};
    const auto after = wire_endpoints<Address>(rewrite.source, rewrite.destination, rewrite.source_port,
                                               rewrite.destination_port);
    const TranslationDeltas deltas = translation_deltas(before, after);
    if (parsed.key.protocol == Protocol::Sctp) {
        return translate_association(frame.data(), parsed, after.source, after.destination, after.source_port,
                                     after.destination_port, deltas.ip);
    }
    translate_packet(frame.data(), parsed, after.source, after.destination, after.source_port,
                     after.destination_port, deltas.l4, deltas.ip);
}

}  // namespace

TranslationDeltas translation_deltas(const FlowKey& before, const Rewrite& after) noexcept {
    return are_both_v4(before.source, after.source) ? deltas_between<Be32>(before, after)
                                                    : deltas_between<std::array<uint8_t, 16>>(before, after);
}

void apply(std::span<uint8_t> frame, const Parsed& parsed, const Rewrite& rewrite) noexcept {
    PENSTOCK_ASSERT(parsed.payload_offset <= frame.size() && rewrite.source.family() == parsed.family);
    if (parsed.family == IpFamily::V4) {
        apply_to<Be32>(frame, parsed, rewrite);
    } else {
        apply_to<std::array<uint8_t, 16>>(frame, parsed, rewrite);
    }
}

void set_ethernet(std::span<uint8_t> frame, const MacAddr& source, const MacAddr& destination) noexcept {
    PENSTOCK_ASSERT(frame.size() >= sizeof(EthernetHeader));
    store(frame.data() + offsetof(EthernetHeader, source), source);
    store(frame.data() + offsetof(EthernetHeader, destination), destination);
}

}  // namespace penstock::packet
