// SPDX-License-Identifier: Apache-2.0
// BFD control packets (RFC 5880, 4.1): the payload of the UDP datagrams that the two ends of a session
// exchange. Without authentication.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "dataplane/base/bytes.hpp"
#include "dataplane/base/protocol.hpp"

namespace penstock::bfd {

// UDP destination ports (RFC 5881, 4; RFC 5883, 5).
inline constexpr L4Port kSingleHopPort = 3784;
inline constexpr L4Port kMultihopPort = 4784;

inline constexpr size_t kControlPacketBytes = 24;

// Values of the protocol.
enum class State : uint8_t { AdminDown = 0, Down = 1, Init = 2, Up = 3 };
enum class Diagnostic : uint8_t {
    None = 0,
    DetectionTimeExpired = 1,
    EchoFailed = 2,
    NeighbourSignaledDown = 3,
    ForwardingPlaneReset = 4,
    PathDown = 5,
    ConcatenatedPathDown = 6,
    AdministrativelyDown = 7,
    ReverseConcatenatedPathDown = 8,
};

// "up", "down", "init", "admin-down".
[[nodiscard]] std::string_view text_of(State state) noexcept;
// "detection time expired"; "" for None, "unknown" for a value without a name.
[[nodiscard]] std::string_view text_of(Diagnostic diagnostic) noexcept;

// In host byte order. Intervals are in microseconds.
struct ControlPacket {
    State state = State::Down;
    Diagnostic diagnostic = Diagnostic::None;  // 0 to 31, named or not
    bool poll = false;
    bool final = false;
    bool control_plane_independent = false;
    bool demand = false;
    uint8_t detect_multiplier = 0;
    uint32_t my_discriminator = 0;
    uint32_t your_discriminator = 0;
    uint32_t desired_min_tx_us = 0;
    uint32_t required_min_rx_us = 0;
    uint32_t required_min_echo_rx_us = 0;
    bool operator==(const ControlPacket&) const = default;
};

// Empty if the payload fails a check of RFC 5880, 6.8.6 that needs no session, or has authentication.
[[nodiscard]] std::optional<ControlPacket> parse(ByteView payload) noexcept;
[[nodiscard]] std::array<uint8_t, kControlPacketBytes> wire_of(const ControlPacket& packet) noexcept;

}  // namespace penstock::bfd
