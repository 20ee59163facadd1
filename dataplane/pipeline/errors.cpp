#include "dataplane/pipeline/errors.hpp"

#include "dataplane/packet/quoted.hpp"
#include "dataplane/pipeline/forward.hpp"

namespace penstock::pipeline {
namespace {

using packet::Quote;

ErrorOwners owners_of(const WorkerContext& ctx, const Burst& burst, uint32_t i, const Quote& quote) noexcept {
    const Arrival& arrival = burst.arrival[i];
    if (arrival.note.from_host) {
        return {.candidates = place_from_host(quote.key.reversed(), *ctx.snapshot, ctx.owner, arrival.note.receiver)};
    }
    return place_error(quote.key, *ctx.snapshot, ctx.owner,
                       {.receiver = arrival.note.receiver, .port = arrival.port, .promises = ctx.ports[arrival.port.value].promises});
}

// No flow of ours is quoted. `is_of_service`: it has, or had, the tuple of one. To the host's own address it may be about the host's own
// connection, and what is nobody's is Linux's to forward; but of a Service's packet Linux knows nothing, and to an address that only
// Services have nobody may answer.
void settle_unknown(const WorkerContext& ctx, Burst& burst, uint32_t i, DropReason reason, bool is_of_service) noexcept {
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

// The connection's packets that go the error's way arrive in `direction`.
template <packet::WireAddress Address>
void translate(WorkerContext& ctx, Burst& burst, uint32_t i, const Quote& quote, const conn::Entry& connection,
               conn::Direction direction) noexcept {
    using Header = std::conditional_t<std::is_same_v<Address, Be32>, packet::Ipv4Header, packet::Ipv6Header>;
    const packet::Parsed& parsed = burst.parsed[i];
    const conn::Direction other = conn::opposite(direction);
    const Tuple<Address> as_arrived = tuple_of<Address>(connection, direction);
    const Tuple<Address> as_sent = tuple_of<Address>(connection, other);  // the quoted packet, when the gateway received it
    const auto is_reverse = static_cast<uint16_t>(direction);
    const auto source = load<Address>(burst.data[i] + parsed.l3_offset + offsetof(Header, source));
    const packet::ErrorRewrite<Address> rewrite{
        .source = source == as_arrived.source ? as_sent.destination : source,
        .destination = as_sent.source,
        .quoted = {as_sent.source, as_sent.destination, Be16::from_host(connection.source_port(other)),
                   Be16::from_host(connection.destination_port(other))},
        .quoted_deltas = {connection.l4_delta.inverse_if(is_reverse), connection.ip_delta.inverse_if(is_reverse)}};
    packet::translate_error(burst.data[i], parsed, quote, rewrite);
    ctx.count()[stats::Counter::IcmpErrorsTranslated].add(1);
    if constexpr (std::is_same_v<Address, Be32>) {
        forward_one(ctx, burst, i, rewrite.destination, parsed.l3_length);
    } else {
        forward_one(ctx, burst, i, IpAddr::v6(rewrite.destination), parsed.l3_length);
    }
}

void pass(WorkerContext& ctx, Burst& burst, uint32_t i, const Quote& quote, conn::Found found) noexcept {
    const packet::Parsed& parsed = burst.parsed[i];
    if (!packet::has_valid_icmp_checksum(ByteView(burst.data[i], burst.length[i]), parsed)) {
        return burst.drop(i, DropReason::BadIcmp);  // RFC 5508, REQ-3
    }
    if (parsed.ttl <= 1) {
        return burst.drop(i, DropReason::TtlExpired);  // of an error nobody is told (RFC 1122, 3.2.2)
    }
    // From outside with an address of the host: forged, and the host would be believed.
    if (!burst.arrival[i].note.from_host && ctx.snapshot->routes->is_host_address(parsed.key.source)) {
        return burst.drop(i, DropReason::MartianSource);
    }
    const conn::Entry& connection = ctx.connections.at(found.index);
    connection.is_v6() ? translate<std::array<uint8_t, 16>>(ctx, burst, i, quote, connection, found.direction)
                       : translate<Be32>(ctx, burst, i, quote, connection, found.direction);
}

// Asking everybody is for the few errors that come another way than their flow: forged ones must not occupy all workers.
bool may_ask_on(WorkerContext& ctx, const ErrorOwners& owners, uint32_t turn) noexcept {
    return turn + 1 != owners.candidates.count || !owners.may_be_anywhere || ctx.error_searches.take(ctx.now);
}

}  // namespace

void serve_error(WorkerContext& ctx, Burst& burst, uint32_t i) noexcept {
    const packet::Parsed& parsed = burst.parsed[i];
    const auto quote = packet::quoted_packet(ByteView(burst.data[i], burst.length[i]), parsed);
    if (!quote) {
        return settle_unknown(ctx, burst, i, quote.error(), false);
    }
    const ErrorOwners owners = owners_of(ctx, burst, i, *quote);
    // An error goes to whom its quote names as the sender, or it is about nothing that was sent.
    if (quote->key.source != parsed.key.destination) {
        return settle_unknown(ctx, burst, i, DropReason::IcmpUnknownFlow, owners.candidates.count > 0);
    }
    const packet::FlowKey answered = quote->key.reversed();
    const auto find = [&] { return ctx.connections.find(answered, ctx.connections.hash(answered)); };
    if (owners.candidates.count == 0) {
        // What is gone from the configuration may have flows yet; a single worker has them all.
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
        if (!may_ask_on(ctx, owners, turn)) {
            break;
        }
    }
    settle_unknown(ctx, burst, i, DropReason::IcmpUnknownFlow, owners.candidates.count > 0);
}

}  // namespace penstock::pipeline
