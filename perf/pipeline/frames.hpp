// Frames as they come from the wire, made and checked here byte by byte: with none of the product's own code for headers and checksums, so
// that a mistake there cannot confirm itself.
#pragma once

#include <cstdint>

#include "dataplane/packet/flow_key.hpp"

namespace penstock::perf {

inline constexpr uint8_t kFin = 0x01, kSyn = 0x02, kAck = 0x10;

// A TCP segment without options or payload, or a UDP datagram without payload, padded to the 60 bytes that Ethernet asks for; both
// checksums correct; addressed to `port`. Returns the frame's length.
uint16_t make_frame(uint8_t* frame, const packet::FlowKey& key, uint8_t tcp_flags,
                    const MacAddr& port) noexcept;

// The tuple that a frame carries.
[[nodiscard]] packet::FlowKey tuple_in(const uint8_t* frame) noexcept;

// Whether the frame carries this tuple, its time to live has been lowered, and its checksums are right when they are computed anew.
[[nodiscard]] bool is_translated_to(const uint8_t* frame, const packet::FlowKey& key) noexcept;

}  // namespace penstock::perf
