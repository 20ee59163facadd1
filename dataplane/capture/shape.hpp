// SPDX-License-Identifier: Apache-2.0
// The forms of nearly all packets that are forwarded: TCP or UDP directly behind an IP header without
// options, and no fragment. A filter is prepared for each of them (specialise.hpp).
#pragma once

#include <cstdint>

#include "dataplane/base/bytes.hpp"
#include "dataplane/base/cpu.hpp"
#include "dataplane/base/protocol.hpp"

namespace penstock::capture {

enum class Shape : uint8_t { TcpV4, UdpV4, TcpV6, UdpV6, None };
inline constexpr uint8_t kShapes = 4;

// Frames of this length have all bytes that determine the shape.
inline constexpr uint32_t kShapeBytes = 24;
inline constexpr uint32_t kTypePlace = 12, kIpPlace = 14, kFragmentPlace = 20, kProtocolPlaceV4 = 23,
                          kProtocolPlaceV6 = 20;
inline constexpr uint16_t kTypeV4 = 0x0800, kTypeV6 = 0x86dd;
inline constexpr uint8_t kVersionAndLengthV4 = 0x45;
inline constexpr uint16_t kFragmentBits = 0x3fff;  // more fragments, and the offset

[[nodiscard]] PENSTOCK_ALWAYS_INLINE Shape shape_of(const uint8_t* frame) noexcept {
    constexpr auto kTcp = static_cast<uint8_t>(Protocol::Tcp);
    constexpr auto kUdp = static_cast<uint8_t>(Protocol::Udp);
    const auto type = load<uint16_t>(frame + kTypePlace);
    if (type == __builtin_bswap16(kTypeV4)) [[likely]] {
        // One load has the version, the header length and the fragment.
        constexpr uint32_t kFragmentShift = 8 * (kFragmentPlace - kIpPlace);
        constexpr uint64_t kMask = 0xff | uint64_t{__builtin_bswap16(kFragmentBits)} << kFragmentShift;
        if ((load<uint64_t>(frame + kIpPlace) & kMask) != kVersionAndLengthV4) [[unlikely]] {
            return Shape::None;
        }
        const uint8_t protocol = frame[kProtocolPlaceV4];
        return protocol == kTcp ? Shape::TcpV4 : protocol == kUdp ? Shape::UdpV4 : Shape::None;
    }
    if (type == __builtin_bswap16(kTypeV6)) {
        const uint8_t protocol = frame[kProtocolPlaceV6];
        return protocol == kTcp ? Shape::TcpV6 : protocol == kUdp ? Shape::UdpV6 : Shape::None;
    }
    return Shape::None;
}

}  // namespace penstock::capture
