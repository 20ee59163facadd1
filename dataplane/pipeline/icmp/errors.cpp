#include "dataplane/pipeline/icmp/errors.hpp"

#include <optional>

#include "dataplane/packet/other_family.hpp"
#include "dataplane/packet/quoted.hpp"
#include "dataplane/packet/wire.hpp"
#include "dataplane/pipeline/answers/own_errors.hpp"
#include "dataplane/pipeline/forward.hpp"
#include "dataplane/pipeline/other_family.hpp"

namespace penstock::pipeline {
namespace {

using packet::Quote;

constexpr uint32_t mtu_min(IpFamily family) noexcept {
    return family == IpFamily::V4 ? packet::kIpv4MtuMin : packet::kIpv6MtuMin;
}

// Best of what the ports promise: a flow may have come by another one than an error about it.
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

// No flow of ours is quoted. `is_of_service`: it has, or had, the tuple of one. To the host's own address it may be about the host's own
// connection, and what is nobody's is Linux's to forward; but of a Service's packet Linux knows nothing, and to an address that only
// Services have nobody may answer.
void settle_unknown(const WorkerContext& ctx, Burst& burst, uint32_t i, DropReason reason,
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

// Whether a too-big can be true, and may be told to whom it is for (RFC 5927, 7.2; RFC 8201, 4). Its MTU is raised to `shared_min` where it
// is for an endpoint that sees a SNAT address: the endpoint believes it of that address, behind which are all clients, and one of them must
// not make the others' packets small. Anything else is the error's receiver's to judge.
bool is_credible(Burst& burst, uint32_t i, uint16_t shared_min, const Quote& quote,
                 const conn::Entry& connection, conn::Direction direction) noexcept {
    const packet::Parsed& parsed = burst.parsed[i];
    const auto told = packet::too_big(ByteView(burst.data[i], burst.length[i]), parsed, quote);
    if (!told) {
        return true;
    }
    if (told->mtu == 0 && parsed.family == IpFamily::V4 && connection.is_mixed()) {
        return true;  // from a router that knows no better (RFC 1191, 5): conversion finds an MTU, which IPv6 never has below 1,280
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

// From outside with an address of the gateway's own: forged, and the receiver would believe that the gateway says it. Over a link-local one
// nobody answers beyond the link (RFC 4291, 2.5.6).
bool is_martian(const WorkerContext& ctx, const Burst& burst, uint32_t i) noexcept {
    const IpAddr& source = burst.parsed[i].key.source;
    return !burst.arrival[i].note.from_host &&
           (ctx.snapshot->routes->is_local_source(source) || may_be_of_flow(source, *ctx.snapshot) ||
            (!source.is_v4() && source.is_link_local()));
}

// The connection's packets that go the error's way arrive in `direction`.
template <packet::WireAddress Address>
void translate(WorkerContext& ctx, Burst& burst, uint32_t i, const Quote& quote,
               const conn::Entry& connection, conn::Direction direction) noexcept {
    using Header = std::conditional_t<std::is_same_v<Address, Be32>, packet::Ipv4Header, packet::Ipv6Header>;
    const packet::Parsed& parsed = burst.parsed[i];
    const conn::Direction other = conn::opposite(direction);
    const Tuple<Address> as_arrived = tuple_of<Address>(connection, direction);
    const Tuple<Address> as_sent =
        tuple_of<Address>(connection, other);  // the quoted packet, when the gateway received it
    const auto is_reverse = static_cast<uint16_t>(direction);
    const auto source = load<Address>(burst.data[i] + parsed.l3_offset + offsetof(Header, source));
    const packet::ErrorRewrite<Address> rewrite{
        .source = source == as_arrived.source ? as_sent.destination : source,
        .destination = as_sent.source,
        .quoted = {as_sent.source, as_sent.destination, Be16::from_host(connection.source_port(other)),
                   Be16::from_host(connection.destination_port(other))},
        .quoted_deltas = {connection.l4_delta.inverse_if(is_reverse),
                          connection.ip_delta.inverse_if(is_reverse)}};
    // An endpoint that would tell itself of its own packet, or a client: somebody has taken its address.
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

// The same of a mixed connection. What a router on the way says cannot come from its own address, which the other family has no words for:
// the gateway is a router there too, and says it by its own (RFC 6791).
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
        return burst.drop(i, DropReason::TtlExpired);  // of an error nobody is told (RFC 1122, 3.2.2)
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

// Asking everybody is for the few errors that come another way than their flow: forged ones must not occupy all workers, and broken ones
// must not use up the turns of the others.
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
        // Where ports should be and are not, it may quote what an endpoint got from its client's own address. Linux would pass that on as
        // it is, and the client hear of an address that it has never asked.
        return settle_unknown(ctx, burst, i, quote.error(), quote.error() == DropReason::BadIcmp);
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
        if (const auto refusal = refuses_search(ctx, burst, i, owners)) {
            return settle_unknown(ctx, burst, i, *refusal, true);
        }
    }
    settle_unknown(ctx, burst, i, DropReason::IcmpUnknownFlow, owners.candidates.count > 0);
}

}  // namespace penstock::pipeline
