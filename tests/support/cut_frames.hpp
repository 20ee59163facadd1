// SPDX-License-Identifier: Apache-2.0
// The frames that packet::Ipv4Fragments or Ipv6Fragments plan, assembled as the owner of the buffers does.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "dataplane/base/bytes.hpp"

namespace penstock::test {

// Cuts `frame`, whose IP packet begins at `l3_offset`, for a link of `mtu` IP bytes. Empty if it cannot be
// cut.
template <typename Fragments>
[[nodiscard]] std::optional<std::vector<std::vector<uint8_t>>> cut_frames(const std::vector<uint8_t>& frame,
                                                                          size_t l3_offset, uint16_t mtu) {
    const auto fragments = Fragments::of(ByteView(frame).subspan(l3_offset), mtu);
    if (!fragments) {
        return std::nullopt;
    }
    const auto packet_at = frame.begin() + static_cast<std::ptrdiff_t>(l3_offset);
    std::vector<std::vector<uint8_t>> frames;
    for (uint32_t number = 0; number < fragments->count(); ++number) {
        const auto fragment = fragments->at(number);
        std::vector<uint8_t>& made = frames.emplace_back(frame.begin(), packet_at);
        made.insert(made.end(), fragment.header.begin(), fragment.header.begin() + fragment.header_bytes);
        made.insert(made.end(), packet_at + fragment.payload_at,
                    packet_at + fragment.payload_at + fragment.payload_bytes);
    }
    return frames;
}

}  // namespace penstock::test
