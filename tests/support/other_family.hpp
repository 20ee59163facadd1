// SPDX-License-Identifier: Apache-2.0
// For tests of packets that are translated to the other family: a buffer in which a frame can grow or shrink,
// with guard bytes around it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "dataplane/base/check.hpp"
#include "dataplane/packet/fragment.hpp"
#include "dataplane/packet/other_family.hpp"
#include "dataplane/packet/parse.hpp"
#include "dataplane/packet/rewrite.hpp"

namespace penstock::test {

using Bytes = std::vector<uint8_t>;

// A frame between guard bytes that must not be written. The headroom is as requested, and the buffer ends
// with the frame.
struct MovableBuffer {
    MovableBuffer(ByteView bytes, uint16_t headroom)
        : memory(kGuard + headroom + bytes.size() + kGuard, kFill) {
        std::copy(bytes.begin(), bytes.end(), memory.begin() + kGuard + headroom);
        before = memory;
        const auto length = static_cast<uint16_t>(bytes.size());
        frame = {.data = memory.data() + kGuard + headroom,
                 .length = length,
                 .headroom = headroom,
                 .capacity = length};
        frame_before = frame;
    }

    [[nodiscard]] Bytes content() const { return {frame.data, frame.data + frame.length}; }
    [[nodiscard]] bool is_untouched() const {
        return memory == before && frame.data == frame_before.data && frame.length == frame_before.length &&
               frame.headroom == frame_before.headroom && frame.capacity == frame_before.capacity;
    }
    // True if the frame lies in its original buffer, and nothing outside the buffer was written.
    [[nodiscard]] bool is_sound() const {
        const auto is_fill = [](ByteView bytes) {
            return std::all_of(bytes.begin(), bytes.end(), [](uint8_t byte) { return byte == kFill; });
        };
        return frame.length <= frame.capacity && frame.data - frame.headroom == memory.data() + kGuard &&
               frame.headroom + frame.capacity == frame_before.headroom + frame_before.capacity &&
               is_fill(ByteView(memory).first(kGuard)) && is_fill(ByteView(memory).last(kGuard));
    }

    static constexpr size_t kGuard = 64;
    static constexpr uint8_t kFill = 0xee;
    Bytes memory, before;
    packet::MovableFrame frame, frame_before;
};

// Parses a frame that must be valid; a first fragment including its ports.
[[nodiscard]] inline packet::Parsed parsed_of(ByteView frame) {
    packet::Parsed parsed;
    PENSTOCK_CHECK(packet::parse(frame, parsed).has_value());
    if (parsed.kind == packet::PacketKind::Fragment) {
        const auto place = packet::fragment_range(frame, parsed);
        PENSTOCK_CHECK(place.has_value());
        PENSTOCK_CHECK(!place->is_first() || packet::read_first_fragment(frame, parsed).has_value());
    }
    return parsed;
}

[[nodiscard]] inline packet::FamilyRewrite family_rewrite(const packet::FlowKey& before,
                                                          const packet::Rewrite& after) {
    return {.source = after.source,
            .destination = after.destination,
            .source_port = Be16::from_host(after.source_port),
            .destination_port = Be16::from_host(after.destination_port),
            .l4 = packet::translation_deltas(before, after).l4,
            .protocol = before.protocol};
}

}  // namespace penstock::test
