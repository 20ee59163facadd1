// SPDX-License-Identifier: Apache-2.0
#include "control/bfd/frr_messages.hpp"

#include <algorithm>
#include <cstring>

namespace penstock::bfd {
namespace {

enum class Type : uint16_t {
    EchoRequest = 0,
    EchoReply = 1,
    AddSession = 2,
    DeleteSession = 3,
    StateChange = 4,
    RequestCounters = 5,
    Counters = 6,
};

constexpr size_t kHeaderBytes = 8, kEchoBytes = 16, kSessionBytes = 132;
// The structures of C with their padding.
constexpr size_t kStateBytes = 28, kCountersBytes = 2 * sizeof(uint32_t) + 8 * sizeof(uint64_t);
constexpr size_t kMessageBytesMax = 1'024;  // no message of either version is as long
constexpr uint8_t kVersionMax = 2;

// Offsets in a session.
constexpr size_t kFlags = 0, kLocal = 4, kPeer = 20, kDiscriminator = 36, kMinTx = 40, kMinRx = 44, kTtl = 60,
                 kMultiplier = 61, kInterface = 68, kInterfaceBytes = 64, kMode = 132, kEncapsulation = 133;

// Of demand mode (1U << 1) and echo packets (1U << 3), nothing is read: the workers have neither.
constexpr uint32_t kMultihop = 1U << 0, kIndependent = 1U << 2, kIpv6 = 1U << 4, kPassive = 1U << 5,
                   kShutdown = 1U << 6;

// Flags of the peer in a state change.
constexpr uint32_t kPeerIndependent = 1U << 0, kPeerDemand = 1U << 1;

uint16_t number16(ByteView bytes, size_t at) {
    return load<Be16>(bytes.data() + at).host();
}
uint32_t number32(ByteView bytes, size_t at) {
    return load<Be32>(bytes.data() + at).host();
}

IpAddr address_at(ByteView bytes, size_t at, bool is_v6) {
    return is_v6 ? IpAddr::v6(load<std::array<uint8_t, 16>>(bytes.data() + at))
                 : IpAddr::v4(load<Be32>(bytes.data() + at));
}

SessionRequest session_of(ByteView body, bool removes) {
    const uint32_t flags = number32(body, kFlags);
    const bool is_v6 = (flags & kIpv6) != 0;
    const auto* const name = reinterpret_cast<const char*>(body.data() + kInterface);
    return {.removes = removes,
            .discriminator = number32(body, kDiscriminator),
            .local = address_at(body, kLocal, is_v6),
            .peer = address_at(body, kPeer, is_v6),
            .is_multihop = (flags & kMultihop) != 0,
            .is_passive = (flags & kPassive) != 0,
            .is_shut_down = (flags & kShutdown) != 0,
            .control_plane_independent = (flags & kIndependent) != 0,
            .is_other_kind = body.size() > kEncapsulation && (body[kMode] != 0 || body[kEncapsulation] != 0),
            .min_tx_us = number32(body, kMinTx),
            .min_rx_us = number32(body, kMinRx),
            .ttl_min = body[kTtl],
            .detect_multiplier = body[kMultiplier],
            .interface = std::string(name, strnlen(name, kInterfaceBytes))};
}

class Writer {
 public:
    Writer(uint8_t version, Type type, uint16_t id, size_t body_bytes) {
        bytes_.reserve(kHeaderBytes + body_bytes);
        add8(version);
        add8(0);
        add16(static_cast<uint16_t>(type));
        add16(id);
        add16(static_cast<uint16_t>(kHeaderBytes + body_bytes));
    }
    Writer& add8(uint8_t value) { return add(&value, sizeof value); }
    Writer& add16(uint16_t value) {
        const Be16 wire = Be16::from_host(value);
        return add(&wire, sizeof wire);
    }
    Writer& add32(uint32_t value) {
        const Be32 wire = Be32::from_host(value);
        return add(&wire, sizeof wire);
    }
    Writer& add64(uint64_t value) {
        return add32(static_cast<uint32_t>(value >> 32)).add32(static_cast<uint32_t>(value));
    }
    Writer& add(const void* from, size_t count) {
        const auto* const bytes = static_cast<const uint8_t*>(from);
        bytes_.insert(bytes_.end(), bytes, bytes + count);
        return *this;
    }
    std::vector<uint8_t> take() { return std::move(bytes_); }

 private:
    std::vector<uint8_t> bytes_;
};

// Least lengths of the messages that are read.
size_t least_body(Type type) {
    switch (type) {
        case Type::AddSession:
        case Type::DeleteSession:
            return kSessionBytes;
        case Type::EchoRequest:
            return kEchoBytes;
        case Type::RequestCounters:
            return sizeof(uint32_t);
        case Type::EchoReply:
        case Type::StateChange:
        case Type::Counters:
            break;
    }
    return 0;
}

}  // namespace

Result<std::optional<FrrMessage>> FrrReader::next() {
    while (bytes_.size() >= kHeaderBytes) {
        const ByteView all(bytes_);
        const uint8_t version = all[0];
        const auto type = static_cast<Type>(number16(all, 2));
        const uint16_t id = number16(all, 4);
        const size_t length = number16(all, 6);
        if (version == 0 || version > kVersionMax) {
            return fail(Errc::InvalidArgument,
                        "version " + std::to_string(version) + " of the protocol; 1 and 2 are supported");
        }
        if (length < kHeaderBytes + least_body(type) || length > kMessageBytesMax) {
            return fail(Errc::InvalidArgument, "a message of type " +
                                                   std::to_string(static_cast<unsigned>(type)) + " has " +
                                                   std::to_string(length) + " bytes");
        }
        if (all.size() < length) {
            break;
        }
        version_ = version;
        const std::vector<uint8_t> body(bytes_.begin() + kHeaderBytes,
                                        bytes_.begin() + static_cast<ptrdiff_t>(length));
        bytes_.erase(bytes_.begin(), bytes_.begin() + static_cast<ptrdiff_t>(length));
        switch (type) {
            case Type::AddSession:
            case Type::DeleteSession:
                return FrrMessage(session_of(body, type == Type::DeleteSession));
            case Type::EchoRequest:
                return FrrMessage(EchoRequest{load<std::array<uint8_t, 8>>(body.data())});
            case Type::RequestCounters:
                return FrrMessage(CountersRequest{.id = id, .discriminator = number32(body, 0)});
            case Type::EchoReply:
            case Type::StateChange:
            case Type::Counters:
                break;
        }
    }
    return std::nullopt;
}

std::vector<uint8_t> state_change(uint8_t version, uint32_t discriminator, const Status& status) {
    const ControlPacket& peer = status.remote;
    return Writer(version, Type::StateChange, 0, kStateBytes)
        .add32(discriminator)
        .add32(status.remote_discriminator)
        .add32((peer.control_plane_independent ? kPeerIndependent : 0) | (peer.demand ? kPeerDemand : 0))
        .add32(peer.desired_min_tx_us)
        .add32(peer.required_min_rx_us)
        .add32(peer.required_min_echo_rx_us)
        .add8(static_cast<uint8_t>(status.state))
        .add8(static_cast<uint8_t>(peer.diagnostic))
        .add8(peer.detect_multiplier)
        .add8(0)
        .take();
}

std::vector<uint8_t> echo_reply(uint8_t version, const EchoRequest& request, uint64_t now_us) {
    return Writer(version, Type::EchoReply, 0, kEchoBytes)
        .add(request.sent_at.data(), request.sent_at.size())
        .add64(now_us)
        .take();
}

std::vector<uint8_t> counters(uint8_t version, const CountersRequest& request, const PacketCounts& counts) {
    Writer out(version, Type::Counters, request.id, kCountersBytes);
    out.add32(request.discriminator)
        .add32(0)
        .add64(counts.received_bytes)
        .add64(counts.received)
        .add64(counts.sent_bytes)
        .add64(counts.sent);
    for (int echo = 0; echo < 4; ++echo) {
        out.add64(0);
    }
    return out.take();
}

}  // namespace penstock::bfd
