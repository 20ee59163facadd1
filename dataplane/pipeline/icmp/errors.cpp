// SPDX-License-Identifier: Apache-2.0
#include "dataplane/pipeline/icmp/errors.hpp"

#include <optional>

#include "dataplane/packet/other_family.hpp"
#include "dataplane/packet/quoted.hpp"
#include "dataplane/packet/wire.hpp"
#include "dataplane/pipeline/answers/own_errors.hpp"
#include "dataplane/pipeline/forward.hpp"
#include "dataplane/pipeline/opening/strays.hpp"
#include "dataplane/pipeline/opening/take_over.hpp"
#include "dataplane/pipeline/other_family.hpp"
#include "dataplane/pipeline/placement.hpp"

namespace penstock::pipeline {
namespace {

using packet::Quote;

constexpr uint32_t mtu_min(IpFamily family) noexcept {
    return family == IpFamily::V4 ? packet::kIpv4MtuMin : packet::kIpv6MtuMin;
}

// The best promises of all ports: a flow may arrive on another port than an error about it.
PortPromises promises_of_any_port(const WorkerContext& ctx) noexcept {
    PortPromises any{.flow_stays_on_queue = false, .snat_blocks_on_queue = true};
    for (const PortFacts& port : ctx.ports) {
        if (port.promises.flow_stays_on_queue) {
            any.flow_stays_on_queue = true;
            any.snat_blocks_on_queue &= port.promises.snat_blocks_on_queue;
        }
    }
    return any;
}

ErrorOwners owners_of(const WorkerContext& ctx, const Burst& burst, uint32_t i, const Quote& quote) noexcept {
    const Arrival& arrival = burst.arrival[i];
    if (arrival.note.from_host) {
        return {.candidates =
                    place_from_host(quote.key.reversed(), *ctx.snapshot, ctx.owner, arrival.note.receiver)};
    }
    return place_error(quote.key, *ctx.snapshot, ctx.owner,
                       {.receiver = arrival.note.receiver,
                        .port = arrival.port,
                        .promises = ctx.ports[arrival.port.value].promises},
                       promises_of_any_port(ctx));
}

// The quoted packet belongs to no known flow. `is_of_service`: it has, or had, the tuple of a Service flow.
// An error to the host's own address may concern a connection of the host, and Linux forwards errors that
// concern no Service. Linux has no state for the packets of Services, and nothing may answer for an address
// that only Services have.
void punt_or_drop_unknown(const WorkerContext& ctx, Burst& burst, uint32_t i, DropReason reason,
                          bool is_of_service) noexcept {
    if (burst.arrival[i].note.from_host) {
        return burst.relay(i);
    }
    const config::Snapshot& snapshot = *ctx.snapshot;
    const IpAddr& destination = burst.parsed[i].key.destination;
    if (!snapshot.routes->is_local(destination) && (is_of_service || may_be_of_flow(destination, snapshot))) {
        return burst.drop(i, reason);
    }
    burst.verdict[i] = Verdict::Punt;
}

template <packet::WireAddress Address>
struct Tuple {
    Address source, destination;
};
template <packet::WireAddress Address>
Tuple<Address> tuple_of(const conn::Entry& connection, conn::Direction direction) noexcept {
    if constexpr (std::is_same_v<Address, Be32>) {
        return {connection.v4_source(direction), connection.v4_destination(direction)};
    } else {
        return {connection.v6_source(direction), connection.v6_destination(direction)};
    }
}

// Whether a packet-too-big error is plausible and may be forwarded to its receiver (RFC 5927, 7.2; RFC 8201,
// 4). Its MTU is raised to `shared_min` if the receiver is an endpoint that sees a SNAT address. The endpoint
// applies the MTU to that address, which all clients share, and one client must not shrink the packets of the
// others. All other checks are left to the error's receiver.
bool is_credible(Burst& burst, uint32_t i, uint16_t shared_min, const Quote& quote,
                 const conn::Entry& connection, conn::Direction direction) noexcept {
    const packet::Parsed& parsed = burst.parsed[i];
    const auto told = packet::too_big(ByteView(burst.data[i], burst.length[i]), parsed, quote);
    if (!told) {
        return true;
    }
    if (told->mtu == 0 && parsed.family == IpFamily::V4 && connection.is_mixed()) {
        // from a router without MTU discovery (RFC 1191, 5): conversion selects an MTU, never below 1,280 for
        // IPv6
        return true;
    }
    if (told->mtu < mtu_min(parsed.family)) {
        return false;
    }
    const bool goes_to_endpoint = direction == conn::Direction::Forward;
    const bool is_raised = goes_to_endpoint && !connection.source_kept && told->mtu < shared_min;
    const uint32_t mtu = is_raised ? shared_min : told->mtu;
    if (told->packet_bytes != 0 && mtu >= told->packet_bytes) {
        return false;
    }
    if (is_raised) {
        packet::set_told_mtu(burst.data[i], parsed, shared_min);
    }
    return true;
}

// A source that belongs to the gateway, on a packet from outside, is spoofed, and the receiver would take the
// gateway for the sender. A link-local source is not reachable beyond its link (RFC 4291, 2.5.6).
bool is_martian(const WorkerContext& ctx, const Burst& burst, uint32_t i) noexcept {
    const IpAddr& source = burst.parsed[i].key.source;
    return !burst.arrival[i].note.from_host &&
           (ctx.snapshot->routes->is_local_source(source) || may_be_of_flow(source, *ctx.snapshot) ||
            (!source.is_v4() && source.is_link_local()));
}

// `direction`: the direction of the connection's packets that travel the same way as the error.
template <packet::WireAddress Address>
void translate(WorkerContext& ctx, Burst& burst, uint32_t i, const Quote& quote,
               const conn::Entry& connection, conn::Direction direction) noexcept {
    using Header = std::conditional_t<std::is_same_v<Address, Be32>, packet::Ipv4Header, packet::Ipv6Header>;
    const packet::Parsed& parsed = burst.parsed[i];
    const conn::Direction other = conn::opposite(direction);
    const Tuple<Address> as_arrived = tuple_of<Address>(connection, direction);
    // the quoted packet, as the gateway received it
    const Tuple<Address> as_sent = tuple_of<Address>(connection, other);
    const auto is_reverse = static_cast<uint16_t>(direction);
    const auto source = load<Address>(burst.data[i] + parsed.l3_offset + offsetof(Header, source));
    const packet::ErrorRewrite<Address> rewrite{
        .source = source == as_arrived.source ? as_sent.destination : source,
        .destination = as_sent.source,
        .quoted = {as_sent.source, as_sent.destination, Be16::from_host(connection.source_port(other)),
                   Be16::from_host(connection.destination_port(other))},
        .quoted_deltas = {connection.l4_delta.inverse_if(is_reverse),
                          connection.ip_delta.inverse_if(is_reverse)}};
    // The endpoint or the client would appear as the source of an error to itself: the packet's source is
    // spoofed.
    if (rewrite.source == rewrite.destination) {
        return burst.drop(i, DropReason::MartianSource);
    }
    packet::translate_error(burst.data[i], parsed, quote, rewrite);
    if constexpr (std::is_same_v<Address, Be32>) {
        forward_one(ctx, burst, i, rewrite.destination, parsed.l3_length);
    } else {
        forward_one(ctx, burst, i, IpAddr::v6(rewrite.destination), parsed.l3_length);
    }
    ctx.count()[stats::Counter::IcmpErrorsTranslated].add(burst.verdict[i] == Verdict::Drop ? 0 : 1);
}

// Same for a mixed connection. The address of a router on the path cannot be expressed in the other family.
// The gateway is a router there as well, and sends the error from its own address (RFC 6791).
PENSTOCK_NOINLINE void convert(WorkerContext& ctx, Burst& burst, uint32_t i, const Quote& quote,
                               const conn::Entry& connection, conn::Direction direction) noexcept {
    const packet::Parsed& parsed = burst.parsed[i];
    const packet::FlowKey as_arrived = connection.key(direction);
    const packet::FlowKey as_sent = connection.key(conn::opposite(direction));
    const packet::ErrorFamilyRewrite rewrite{
        .source = error_source(*ctx.snapshot, as_sent, parsed.key.source == as_arrived.source),
        .destination = as_sent.source,
        .quoted_source = as_sent.source,
        .quoted_destination = as_sent.destination,
        .quoted_source_port = Be16::from_host(as_sent.source_port),
        .quoted_destination_port = Be16::from_host(as_sent.destination_port),
        .quoted_l4 = connection.l4_delta.inverse_if(static_cast<uint16_t>(direction))};
    if (rewrite.source == rewrite.destination) {
        return burst.drop(i, DropReason::MartianSource);
    }
    packet::MovableFrame frame = frame_to_convert(burst, i);
    if (const auto converted = packet::error_to_other_family(frame, parsed, quote, rewrite,
                                                             ctx.next_ipv4_id(rewrite.destination));
        !converted) {
        return burst.drop(i, converted.error());
    }
    take_converted(burst, i, frame);
    forward_one(ctx, burst, i, as_sent.source, static_cast<uint16_t>(burst.length[i] - parsed.l3_offset));
    ctx.count()[stats::Counter::IcmpErrorsTranslated].add(burst.verdict[i] == Verdict::Drop ? 0 : 1);
}

void pass(WorkerContext& ctx, Burst& burst, uint32_t i, const Quote& quote, conn::Found found) noexcept {
    const packet::Parsed& parsed = burst.parsed[i];
    if (!packet::has_valid_icmp_checksum(ByteView(burst.data[i], burst.length[i]), parsed)) {
        return burst.drop(i, DropReason::BadIcmp);  // RFC 5508, REQ-3
    }
    if (parsed.ttl <= 1) {
        return burst.drop(i, DropReason::TtlExpired);  // no error is sent about an error (RFC 1122, 3.2.2)
    }
    if (is_martian(ctx, burst, i)) {
        return burst.drop(i, DropReason::MartianSource);
    }
    const conn::Entry& connection = ctx.connections.at(found.index);
    if (!is_credible(burst, i, ctx.snapshot->packets.min_path_mtu, quote, connection, found.direction)) {
        return burst.drop(i, DropReason::BadIcmp);
    }
    if (connection.is_mixed()) {
        return convert(ctx, burst, i, quote, connection, found.direction);
    }
    connection.is_v6() ? translate<std::array<uint8_t, 16>>(ctx, burst, i, quote, connection, found.direction)
                       : translate<Be32>(ctx, burst, i, quote, connection, found.direction);
}

// Searching all workers is for the few errors that arrive on another path than their flow. Forged errors must
// not occupy all workers, and malformed ones must not use up the limit of the others.
std::optional<DropReason> refuses_search(WorkerContext& ctx, const Burst& burst, uint32_t i,
                                         const ErrorOwners& owners) noexcept {
    if (!owners.may_be_anywhere || burst.arrival[i].note.tried + 1 != owners.candidates.count) {
        return std::nullopt;
    }
    if (!packet::has_valid_icmp_checksum(ByteView(burst.data[i], burst.length[i]), burst.parsed[i])) {
        return DropReason::BadIcmp;
    }
    const uint64_t destination = ctx.owner.client_hash(burst.parsed[i].key.destination);
    return ctx.error_searches.take(ctx.now, destination) ? std::nullopt
                                                         : std::optional(DropReason::IcmpSearchLimited);
}

}  // namespace

void serve_error(WorkerContext& ctx, Burst& burst, uint32_t i) noexcept {
    const packet::Parsed& parsed = burst.parsed[i];
    const auto quote = packet::quoted_packet(ByteView(burst.data[i], burst.length[i]), parsed);
    if (!quote) {
        // If the ports are missing from the quote, it may be a packet that an endpoint got from its client's
        // own address. Linux would forward the error unchanged, and the client would get it about an address
        // to which it has sent nothing.
        return punt_or_drop_unknown(ctx, burst, i, quote.error(), quote.error() == DropReason::BadIcmp);
    }
    ErrorOwners owners = owners_of(ctx, burst, i, *quote);
    owners.may_be_anywhere |=
        ctx.moved != nullptr || (ctx.copies != nullptr && ctx.copies->find(quote->key.reversed()));
    // An error must be addressed to the sender of the quoted packet. Otherwise it concerns no packet that was
    // sent.
    if (quote->key.source != parsed.key.destination) {
        return punt_or_drop_unknown(ctx, burst, i, DropReason::IcmpUnknownFlow, owners.candidates.count > 0);
    }
    const packet::FlowKey answered = quote->key.reversed();
    const auto find = [&] {
        const conn::Found found = ctx.connections.find(answered, ctx.connections.hash(answered));
        if (found.is_hit() || ctx.copies == nullptr || precedes_copies(*ctx.snapshot, answered) ||
            !packet::has_valid_icmp_checksum(ByteView(burst.data[i], burst.length[i]), parsed)) {
            return found;
        }
        return take_over(ctx, answered);
    };
    if (owners.candidates.count == 0) {
        // A flow may outlive its configuration; with a single worker it is found here.
        if (const conn::Found found = find(); found.is_hit()) {
            return pass(ctx, burst, i, *quote, found);
        }
    }
    uint8_t& turn = burst.arrival[i].note.tried;
    for (; turn < owners.turns(ctx.workers); ++turn) {
        if (const WorkerId next = owners.at(turn, ctx.workers); next != ctx.self) {
            burst.verdict[i] = Verdict::Handoff;
            burst.handoff_to[i] = next;
            return;
        }
        if (const conn::Found found = find(); found.is_hit()) {
            return pass(ctx, burst, i, *quote, found);
        }
        if (const auto refusal = refuses_search(ctx, burst, i, owners)) {
            return punt_or_drop_unknown(ctx, burst, i, *refusal, true);
        }
    }
    if (ctx.snapshot->strays != nullptr && forward_stray_error(ctx, burst, i, quote->key)) {
        return;
    }
    punt_or_drop_unknown(ctx, burst, i, DropReason::IcmpUnknownFlow, owners.candidates.count > 0);
}

}  // namespace penstock::pipeline
