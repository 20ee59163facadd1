// SPDX-License-Identifier: Apache-2.0
// Frames as received from the wire, created and checked here byte by byte. The product's code for headers and
// checksums is not used, so that an error there cannot hide itself.
#pragma once

#include <cstdint>

#include "dataplane/packet/flow_key.hpp"

namespace penstock::perf {

inline constexpr uint8_t kFin = 0x01, kSyn = 0x02, kAck = 0x10;

// A TCP segment without options or payload, or a UDP datagram without payload, padded to Ethernet's minimum
// of 60 bytes; both checksums correct; addressed to `port`. Returns the frame's length.
uint16_t make_frame(uint8_t* frame, const packet::FlowKey& key, uint8_t tcp_flags,
                    const MacAddr& port) noexcept;

// The tuple of a frame.
[[nodiscard]] packet::FlowKey tuple_in(const uint8_t* frame) noexcept;

// Whether the frame has this tuple, its time to live was decremented, and its recomputed checksums are
// correct.
[[nodiscard]] bool is_translated_to(const uint8_t* frame, const packet::FlowKey& key) noexcept;

}  // namespace penstock::perf
