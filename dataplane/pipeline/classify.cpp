#include "dataplane/pipeline/classify.hpp"

#include "dataplane/packet/parse.hpp"
#include "dataplane/packet/wire.hpp"

namespace penstock::pipeline {
namespace {

using packet::PacketKind;

// A fragment carries no ports (or its rest would not), so it cannot be matched to a Service or a flow. What may be the host's own goes
// there and is joined by Linux; what is addressed to a VIP ends here by name.
void settle_fragment(const WorkerContext& ctx, Burst& burst, uint32_t i) noexcept {
    const IpAddr& destination = burst.parsed[i].key.destination;
    const config::Snapshot& snapshot = *ctx.snapshot;
    if (snapshot.services->is_vip(destination) && !snapshot.routes->is_local(destination)) {
        burst.drop(i, DropReason::Fragment);
    } else {
        burst.verdict[i] = Verdict::Punt;
    }
}

}  // namespace

void classify(WorkerContext& ctx, Burst& burst) noexcept {
    for (uint32_t i = 0; i < burst.count; ++i) {
        const ByteView frame(burst.data[i], burst.length[i]);
        const MacAddr& own = ctx.ports[burst.arrival[i].port.value].mac;
        packet::Parsed& parsed = burst.parsed[i];
        const auto ip_checksum = burst.arrival[i].note.ip_checksum_checked ? packet::IpChecksum::KnownGood : packet::IpChecksum::Verify;
        if (const packet::ParseResult result = packet::parse(frame, parsed, ip_checksum); !result) [[unlikely]] {
            burst.drop(i, result.error());
            continue;
        }
        // The parser has checked that the Ethernet header is there.
        const auto ethernet = load<packet::EthernetHeader>(frame.data());
        if (ethernet.source == own) [[unlikely]] {
            burst.drop(i, DropReason::OwnSourceMac);
            continue;
        }
        if (!parsed.destination_is_multicast_mac && ethernet.destination != own) [[unlikely]] {
            burst.drop(i, DropReason::WrongDestinationMac);
            continue;
        }
        switch (parsed.kind) {
            case PacketKind::Flow:
                // A unicast packet in a multicast frame is never ours to translate (RFC 1122, 3.3.6).
                burst.verdict[i] = parsed.destination_is_multicast_mac ? Verdict::Punt : Verdict::None;
                break;
            case PacketKind::Fragment:
                settle_fragment(ctx, burst, i);
                break;
            case PacketKind::Ip: {
                // ICMP and the rest: an address that only a Service has is not the host's to answer for.
                const IpAddr& destination = parsed.key.destination;
                const bool only_vip = ctx.snapshot->services->is_vip(destination) && !ctx.snapshot->routes->is_local(destination);
                if (only_vip) {
                    burst.drop(i, DropReason::VipPortClosed);
                } else {
                    burst.verdict[i] = Verdict::Punt;
                }
                break;
            }
            case PacketKind::Other:
                burst.verdict[i] = Verdict::Punt;
                break;
        }
    }
}

}  // namespace penstock::pipeline
