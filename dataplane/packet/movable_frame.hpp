// SPDX-License-Identifier: Apache-2.0
// A frame with a movable start within its buffer: when its headers become longer or shorter, the payload
// stays in place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>

#include "dataplane/base/ip.hpp"
#include "dataplane/base/verdict.hpp"

namespace penstock::packet {

// A frame within its buffer.
struct MovableFrame {
    uint8_t* data = nullptr;  // the Ethernet header
    uint16_t length = 0;      // of the frame
    uint16_t headroom = 0;    // writable bytes in front of data
    uint16_t capacity = 0;    // bytes from data to the end of the buffer
};

// Makes `header_bytes` of room (content undefined) between an Ethernet header for `family` and the payload at
// `payload_at` from the frame's start. The frame ends behind `payload_bytes`. The bytes between are
// overwritten, so the caller must have read them. On an error the frame is unchanged.
//   PacketTooBig  the result would exceed the maximum frame length
//   NoBuffer      not enough headroom
[[nodiscard]] std::expected<void, DropReason> replace_headers(MovableFrame& frame, size_t payload_at,
                                                              IpFamily family, size_t header_bytes,
                                                              size_t payload_bytes) noexcept;

}  // namespace penstock::packet
