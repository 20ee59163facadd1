// SPDX-License-Identifier: Apache-2.0
#include "dataplane/bfd/control_packet.hpp"

namespace penstock::bfd {
namespace {

constexpr uint8_t kVersion = 1;
constexpr uint8_t kPoll = 1U << 5, kFinal = 1U << 4, kIndependent = 1U << 3, kAuthentication = 1U << 2,
                  kDemand = 1U << 1, kMultipoint = 1U << 0;

// Offsets in the packet.
constexpr size_t kFlags = 1, kMultiplier = 2, kLength = 3, kMine = 4, kYours = 8, kDesiredTx = 12,
                 kRequiredRx = 16, kRequiredEchoRx = 20;

}  // namespace

std::string_view text_of(State state) noexcept {
    switch (state) {
        case State::AdminDown:
            return "admin-down";
        case State::Down:
            return "down";
        case State::Init:
            return "init";
        case State::Up:
            return "up";
    }
    return "unknown";
}

std::string_view text_of(Diagnostic diagnostic) noexcept {
    switch (diagnostic) {
        case Diagnostic::None:
            return "";
        case Diagnostic::DetectionTimeExpired:
            return "detection time expired";
        case Diagnostic::EchoFailed:
            return "echo failed";
        case Diagnostic::NeighbourSignaledDown:
            return "neighbour signaled down";
        case Diagnostic::ForwardingPlaneReset:
            return "forwarding plane reset";
        case Diagnostic::PathDown:
            return "path down";
        case Diagnostic::ConcatenatedPathDown:
            return "concatenated path down";
        case Diagnostic::AdministrativelyDown:
            return "administratively down";
        case Diagnostic::ReverseConcatenatedPathDown:
            return "reverse concatenated path down";
    }
    return "unknown";
}

std::optional<ControlPacket> parse(ByteView payload) noexcept {
    if (payload.size() < kControlPacketBytes) {
        return std::nullopt;
    }
    const uint8_t* const at = payload.data();
    const uint8_t flags = at[kFlags];
    const size_t length = at[kLength];
    if (at[0] >> 5 != kVersion || length < kControlPacketBytes || length > payload.size() ||
        at[kMultiplier] == 0 || (flags & (kMultipoint | kAuthentication)) != 0) {
        return std::nullopt;
    }
    const ControlPacket packet{.state = static_cast<State>(flags >> 6),
                               .diagnostic = static_cast<Diagnostic>(at[0] & 0x1f),
                               .poll = (flags & kPoll) != 0,
                               .final = (flags & kFinal) != 0,
                               .control_plane_independent = (flags & kIndependent) != 0,
                               .demand = (flags & kDemand) != 0,
                               .detect_multiplier = at[kMultiplier],
                               .my_discriminator = load<Be32>(at + kMine).host(),
                               .your_discriminator = load<Be32>(at + kYours).host(),
                               .desired_min_tx_us = load<Be32>(at + kDesiredTx).host(),
                               .required_min_rx_us = load<Be32>(at + kRequiredRx).host(),
                               .required_min_echo_rx_us = load<Be32>(at + kRequiredEchoRx).host()};
    // Only the first packets of a session name no receiver.
    const bool names_receiver = packet.your_discriminator != 0;
    if (packet.my_discriminator == 0 ||
        (!names_receiver && packet.state != State::Down && packet.state != State::AdminDown)) {
        return std::nullopt;
    }
    return packet;
}

std::array<uint8_t, kControlPacketBytes> wire_of(const ControlPacket& packet) noexcept {
    std::array<uint8_t, kControlPacketBytes> bytes{};
    bytes[0] = static_cast<uint8_t>(kVersion << 5 | (static_cast<uint8_t>(packet.diagnostic) & 0x1f));
    bytes[kFlags] = static_cast<uint8_t>(
        static_cast<unsigned>(packet.state) << 6 | (packet.poll ? kPoll : 0U) | (packet.final ? kFinal : 0U) |
        (packet.control_plane_independent ? kIndependent : 0U) | (packet.demand ? kDemand : 0U));
    bytes[kMultiplier] = packet.detect_multiplier;
    bytes[kLength] = kControlPacketBytes;
    store(bytes.data() + kMine, Be32::from_host(packet.my_discriminator));
    store(bytes.data() + kYours, Be32::from_host(packet.your_discriminator));
    store(bytes.data() + kDesiredTx, Be32::from_host(packet.desired_min_tx_us));
    store(bytes.data() + kRequiredRx, Be32::from_host(packet.required_min_rx_us));
    store(bytes.data() + kRequiredEchoRx, Be32::from_host(packet.required_min_echo_rx_us));
    return bytes;
}

}  // namespace penstock::bfd
