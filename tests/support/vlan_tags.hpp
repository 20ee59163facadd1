// SPDX-License-Identifier: Apache-2.0
// VLAN tags in front of a frame made by packet_builder (IEEE 802.1Q, 9).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace penstock::test::vlan {

struct Tag {
    uint16_t type;
    uint16_t control;  // priority and VLAN id
};
// Tags without a VLAN (priority tags), and tags with one.
inline constexpr Tag kPriority{0x8100, 0xe000}, kProviderPriority{0x88a8, 0x2000}, kVlan5{0x8100, 0x0005},
    kProvider7{0x88a8, 0xf007};

// The frame with the tags after its addresses, the first one outermost.
[[nodiscard]] inline std::vector<uint8_t> tagged(const std::vector<uint8_t>& frame,
                                                 const std::vector<Tag>& tags) {
    constexpr std::ptrdiff_t kAddressBytes = 12;
    std::vector<uint8_t> out(frame.begin(), frame.begin() + kAddressBytes);
    for (const Tag& tag : tags) {
        for (const uint16_t word : {tag.type, tag.control}) {
            out.push_back(static_cast<uint8_t>(word >> 8));
            out.push_back(static_cast<uint8_t>(word));
        }
    }
    out.insert(out.end(), frame.begin() + kAddressBytes, frame.end());
    return out;
}

}  // namespace penstock::test::vlan
