// SPDX-License-Identifier: Apache-2.0
#include "dataplane/copies/record.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <string>

#include "dataplane/base/bytes.hpp"
#include "dataplane/packet/parse_any.hpp"

namespace penstock::copies {
namespace {

using conn::Connection;
using packet::FlowKey;

enum class WireKind : uint8_t { Ended = 1, HeldV4 = 2, HeldV6 = 3 };

// All records start with it. base/bytes.hpp asserts that the processor is little-endian.
struct [[gnu::packed]] WireStart {
    WireKind kind;
    uint32_t slot;
};
struct WirePorts {
    L4Port source;
    L4Port destination;
};
struct WireHeld {
    WireStart start;
    uint8_t protocol;
    uint8_t state;
    uint8_t flags;
    uint32_t age;
    uint32_t idle;
    std::array<uint32_t, 2> tags;
    std::array<WirePorts, 2> ports;  // by Direction
};
using V4 = std::array<Be32, 4>;
using V6 = std::array<std::array<uint8_t, 16>, 4>;
static_assert(sizeof(WireStart) == kEndedBytes && sizeof(WireHeld) == 32 &&
              sizeof(WireHeld) + sizeof(V4) == kHeldV4Bytes && sizeof(WireHeld) + sizeof(V6) == kHeldV6Bytes);

constexpr size_t bytes_of(WireKind kind) noexcept {
    return kind == WireKind::Ended ? kEndedBytes : kind == WireKind::HeldV4 ? kHeldV4Bytes : kHeldV6Bytes;
}

constexpr uint8_t kSourceKept = 1;
constexpr uint64_t kAgeUnitMs = 10;

uint32_t age_of(CoarseTime time, CoarseTime now, const CoarseClock& clock) noexcept {
    const uint64_t age = clock.to_milliseconds(units_between(time, now)) / kAgeUnitMs;
    return static_cast<uint32_t>(std::min<uint64_t>(age, std::numeric_limits<uint32_t>::max()));
}

CoarseTime time_of(uint32_t age, CoarseTime now, const CoarseClock& clock) noexcept {
    return {static_cast<uint32_t>(now.value - clock.from_milliseconds(age * kAgeUnitMs))};
}

template <typename T>
void append(std::vector<std::byte>& to, const T& value) {
    const auto* bytes = reinterpret_cast<const std::byte*>(&value);
    to.insert(to.end(), bytes, bytes + sizeof value);
}

// Whether a packet of this key can have passed the parser.
bool may_arrive(const FlowKey& key) noexcept {
    return !packet::is_martian(key.source, key.destination) && !packet::is_for_the_host(key.destination);
}

// The rule that the connection breaks; null if it may be one of a gateway.
const char* broken_rule(const Connection& connection, WireKind kind) noexcept {
    const FlowKey& forward = connection.forward;
    const FlowKey& reverse = connection.reverse;
    const bool is_v4 = forward.source.is_v4();
    const bool is_reverse_v4 = reverse.source.is_v4();
    if (!conn::is_state(forward.protocol, connection.state)) {
        return "a connection is of TCP, UDP or SCTP and has a state of its protocol";
    }
    if (is_v4 != forward.destination.is_v4() || is_reverse_v4 != reverse.destination.is_v4()) {
        return "source and destination of a key are of one family";
    }
    if (kind == WireKind::HeldV6 && is_v4 && is_reverse_v4) {
        return "a connection of IPv4 alone is of kind 2";
    }
    if (!may_arrive(forward) || !may_arrive(reverse)) {
        return "addresses are different unicast addresses of hosts";
    }
    for (const L4Port port :
         {forward.source_port, forward.destination_port, reverse.source_port, reverse.destination_port}) {
        if (port == 0) {
            return "a port is not 0";
        }
    }
    if (forward == reverse) {
        return "the two keys of a connection differ";
    }
    if (connection.source_kept && reverse.destination != forward.source) {
        return "a kept source is the client's address";
    }
    return nullptr;
}

std::unexpected<Error> invalid(size_t position, const std::string& rule) {
    return fail(Errc::InvalidArgument, "record at byte " + std::to_string(position) + " of a batch: " + rule);
}

void read_addresses(Connection& connection, const std::byte* from, WireKind kind) noexcept {
    const std::array<IpAddr*, 4> addresses{&connection.forward.source, &connection.forward.destination,
                                           &connection.reverse.source, &connection.reverse.destination};
    for (IpAddr* address : addresses) {
        if (kind == WireKind::HeldV4) {
            *address = IpAddr::v4(load<Be32>(from));
            from += sizeof(Be32);
        } else {
            *address = IpAddr::v6(load<std::array<uint8_t, 16>>(from));
            from += sizeof(IpAddr);
        }
    }
}

}  // namespace

void append_held(std::vector<std::byte>& to, uint32_t slot, const Connection& connection, CoarseTime now,
                 const CoarseClock& clock) {
    const FlowKey& forward = connection.forward;
    const FlowKey& reverse = connection.reverse;
    const bool is_v4 = forward.source.is_v4() && reverse.source.is_v4();
    const uint32_t age = age_of(connection.opened_at, now, clock);
    const WireHeld held{
        .start = {is_v4 ? WireKind::HeldV4 : WireKind::HeldV6, slot},
        .protocol = static_cast<uint8_t>(forward.protocol),
        .state = connection.state,
        .flags = connection.source_kept ? kSourceKept : uint8_t{0},
        .age = age,
        // The two times may be readings of different cores.
        .idle = std::min(age, age_of(connection.last_seen, now, clock)),
        .tags = connection.tags,
        .ports = {{{forward.source_port, forward.destination_port},
                   {reverse.source_port, reverse.destination_port}}},
    };
    append(to, held);
    if (is_v4) {
        append(to, V4{forward.source.v4_wire(), forward.destination.v4_wire(), reverse.source.v4_wire(),
                      reverse.destination.v4_wire()});
    } else {
        append(to, V6{forward.source.bytes(), forward.destination.bytes(), reverse.source.bytes(),
                      reverse.destination.bytes()});
    }
}

void append_ended(std::vector<std::byte>& to, uint32_t slot) {
    append(to, WireStart{WireKind::Ended, slot});
}

uint64_t count_records(std::span<const std::byte> batch) noexcept {
    uint64_t records = 0;
    for (size_t at = 0; at < batch.size(); ++records) {
        at += bytes_of(load<WireStart>(batch.data() + at).kind);
    }
    return records;
}

Result<std::vector<Record>> decode(std::span<const std::byte> batch, CoarseTime now,
                                   const CoarseClock& clock) {
    if (batch.size() > kBatchBytesMax) {
        return fail(Errc::InvalidArgument, "batch of " + std::to_string(batch.size()) + " bytes: at most " +
                                               std::to_string(kBatchBytesMax));
    }
    std::vector<Record> records;
    records.reserve(batch.size() / kHeldV4Bytes + 1);
    for (size_t at = 0; at < batch.size();) {
        const std::byte* from = batch.data() + at;
        const size_t left = batch.size() - at;
        if (left < sizeof(WireStart)) {
            return invalid(at, "the batch ends within the record");
        }
        const auto start = load<WireStart>(from);
        if (start.kind < WireKind::Ended || start.kind > WireKind::HeldV6) {
            return invalid(at, "unknown kind " + std::to_string(static_cast<unsigned>(start.kind)));
        }
        Record& record = records.emplace_back();
        record.slot = start.slot;
        if (start.kind == WireKind::Ended) {
            at += kEndedBytes;
            continue;
        }
        const size_t bytes = bytes_of(start.kind);
        if (left < bytes) {
            return invalid(at, "the batch ends within the record");
        }
        const auto held = load<WireHeld>(from);
        if ((held.flags & ~kSourceKept) != 0) {
            return invalid(at, "unknown flags " + std::to_string(held.flags));
        }
        if (held.idle > held.age) {
            return invalid(at, "a connection is not idle for longer than it is open");
        }
        record.kind = Record::Kind::Held;
        Connection& connection = record.connection;
        const auto protocol = static_cast<Protocol>(held.protocol);
        connection.forward.protocol = protocol;
        connection.forward.source_port = held.ports[0].source;
        connection.forward.destination_port = held.ports[0].destination;
        connection.reverse.protocol = protocol;
        connection.reverse.source_port = held.ports[1].source;
        connection.reverse.destination_port = held.ports[1].destination;
        connection.last_seen = time_of(held.idle, now, clock);
        connection.opened_at = time_of(held.age, now, clock);
        connection.state = held.state;
        connection.source_kept = (held.flags & kSourceKept) != 0;
        connection.tags = held.tags;
        read_addresses(connection, from + sizeof(WireHeld), start.kind);
        if (const char* rule = broken_rule(connection, start.kind)) {
            return invalid(at, rule);
        }
        at += bytes;
    }
    return records;
}

}  // namespace penstock::copies
