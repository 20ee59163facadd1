// SPDX-License-Identifier: Apache-2.0
#include "dataplane/pipeline/answers/own_errors.hpp"

#include "dataplane/base/check.hpp"
#include "dataplane/packet/answers/reject.hpp"
#include "dataplane/packet/icmp.hpp"
#include "dataplane/packet/restore.hpp"
#include "dataplane/packet/wire.hpp"
#include "dataplane/pipeline/forward.hpp"

namespace penstock::pipeline {
namespace {

// The broadcast address of a link with a twin names all hosts of that link (RFC 1812, 4.3.2.7 and 5.3.7).
// Broadcast addresses of remote subnets cannot be recognised. `source` is not a multicast address.
bool is_broadcast_here(const route::RouteTable& routes, const IpAddr& source) noexcept {
    return routes.is_local_source(source) && !routes.is_host_address(source);
}

// Whether an error may be sent about a packet at all (RFC 1122, 3.2.2; RFC 1812, 4.3.2.7; RFC 4443, 2.4 e).
// The parser has already dropped packets whose source is multicast, unspecified or loopback.
bool is_answerable(const route::RouteTable& routes, const uint8_t* frame,
                   const packet::Parsed& parsed) noexcept {
    return parsed.kind == packet::PacketKind::Flow && !parsed.destination_is_multicast_mac &&
           !load<packet::EthernetHeader>(frame).source.is_multicast() &&
           !is_broadcast_here(routes, parsed.key.source);
}

// The gateway's own address on the port by which `sender` is reached, as RFC 1812, 4.3.2.4 requires.
// Otherwise any of its own addresses, because any address is better than a hop missing from a traceroute.
// Unspecified if Linux has no address of that family.
IpAddr own_address_towards(const route::RouteTable& routes, const IpAddr& sender) noexcept {
    const route::Hop* const back = routes.hop(sender);
    IpAddr any;
    for (const route::LocalAddress& own : routes.addresses()) {
        if (own.address.family() != sender.family() || own.address.is_link_local()) {
            continue;
        }
        if (back != nullptr && own.port == back->egress) {
            return own.address;
        }
        any = own.address;
    }
    return any;
}

// Whether the gateway is the destination of packets to this address from the sender's point of view.
bool is_gateways(const config::Snapshot& snapshot, const IpAddr& address) noexcept {
    return snapshot.services->is_vip(address) || snapshot.routes->is_host_address(address) ||
           snapshot.snat->addresses.contains(address);
}

// The bucket of `limiter` for an error to the sender of packet i; null if packet i has been dropped. Cheap
// checks come first: the limit, whose token is taken only for errors that leave, and the route back.
RejectLimiter* bucket_for(WorkerContext& ctx, Burst& burst, uint32_t i, PrefixLimiter& limiter) noexcept {
    const IpAddr& sender = burst.parsed[i].key.source;
    RejectLimiter& bucket = limiter.of(sender, ctx.owner);
    if (!bucket.has_token(ctx.now)) {
        burst.drop(i, DropReason::RejectLimited);
        return nullptr;
    }
    if (!has_way_to(*ctx.snapshot->routes, sender)) {
        burst.drop(i, DropReason::NoRoute);
        return nullptr;
    }
    return &bucket;
}

// Turns packet i, which is as it arrived, into the error, and takes its token.
void answer(WorkerContext& ctx, Burst& burst, uint32_t i, RejectLimiter& bucket, packet::IcmpError error,
            const IpAddr& source) noexcept {
    PENSTOCK_ASSERT(!burst.answers[i]);  // bounds the recursion through forward_one()
    const IpAddr sender = burst.parsed[i].key.source;
    if (!packet::has_valid_l4_checksum(std::span(burst.data[i], burst.length[i]), burst.parsed[i])) {
        return burst.drop(i, DropReason::BadL4Checksum);
    }
    const auto made = packet::make_icmp_error(std::span(burst.data[i], burst.capacity[i]), burst.length[i],
                                              burst.parsed[i], error, source);
    if (!made) {
        return burst.drop(i, made.error());
    }
    burst.length[i] = *made;
    burst.answers[i] = true;
    forward_one(ctx, burst, i, sender, static_cast<uint16_t>(*made - burst.parsed[i].l3_offset));
    if (burst.verdict[i] != Verdict::Drop) {
        bucket.take(ctx.now);
        ctx.count()[stats::Counter::IcmpErrorsSent].add(1);
    }
}

}  // namespace

// Linux accepts no packet from the wire with one of its own addresses as the source, so an error to the host
// carries the destination as its source.
IpAddr error_source(const config::Snapshot& snapshot, const packet::FlowKey& key,
                    bool speaks_for_destination) noexcept {
    if (speaks_for_destination || snapshot.routes->is_host_address(key.source)) {
        return key.destination;
    }
    const IpAddr own = own_address_towards(*snapshot.routes, key.source);
    return own.is_unspecified() ? key.destination : own;
}

void send_time_exceeded(WorkerContext& ctx, Burst& burst, uint32_t i) noexcept {
    const packet::Parsed& parsed = burst.parsed[i];
    const config::Snapshot& snapshot = *ctx.snapshot;
    if (!is_answerable(*snapshot.routes, burst.data[i], parsed)) {
        return burst.drop(i, DropReason::TtlExpired);
    }
    if (RejectLimiter* const bucket = bucket_for(ctx, burst, i, ctx.expiry_answers)) {
        answer(ctx, burst, i, *bucket, packet::time_exceeded(parsed.family),
               error_source(snapshot, parsed.key, false));
    }
}

void send_too_big(WorkerContext& ctx, Burst& burst, uint32_t i, uint16_t mtu, Frame frame) noexcept {
    const packet::Parsed& parsed = burst.parsed[i];
    const config::Snapshot& snapshot = *ctx.snapshot;
    if (burst.answers[i] || !is_answerable(*snapshot.routes, burst.data[i], parsed)) {
        return burst.drop(i, DropReason::PacketTooBig);
    }
    RejectLimiter* const bucket = bucket_for(ctx, burst, i, ctx.too_big_answers);
    if (bucket == nullptr) {
        return;
    }
    if (frame == Frame::Translated) {
        packet::restore(std::span(burst.data[i], burst.length[i]), parsed);
    }
    answer(ctx, burst, i, *bucket, packet::packet_too_big(parsed.family, mtu),
           error_source(snapshot, parsed.key, is_gateways(snapshot, parsed.key.destination)));
}

}  // namespace penstock::pipeline
