// A frame that can begin elsewhere in its buffer: where its headers become longer or shorter, what they are in front of stays where it is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>

#include "dataplane/base/ip.hpp"
#include "dataplane/base/verdict.hpp"

namespace penstock::packet {

// A frame within its buffer.
struct MovableFrame {
    uint8_t* data = nullptr;  // of the Ethernet header
    uint16_t length = 0;      // of the frame
    uint16_t headroom = 0;    // bytes in front of data that may be written
    uint16_t capacity = 0;    // bytes from data to the end of the buffer
};

// Gives the frame `header_bytes` of room, whose content is then undefined, between an Ethernet header for `family` and what stands at
// `payload_at` from its beginning; it ends behind `payload_bytes` of that. What was between is overwritten, so it has been read.
// PacketTooBig: longer than a frame can be. NoBuffer: not so much room in front. On an error the frame is as it was.
[[nodiscard]] std::expected<void, DropReason> replace_headers(MovableFrame& frame, size_t payload_at,
                                                              IpFamily family, size_t header_bytes,
                                                              size_t payload_bytes) noexcept;

}  // namespace penstock::packet
