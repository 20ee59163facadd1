// SPDX-License-Identifier: Apache-2.0
#include "tests/support/fragment_cutter.hpp"

#include <algorithm>

#include "dataplane/base/check.hpp"

#include "tests/support/packet_builder.hpp"

namespace penstock::test {
namespace {

constexpr size_t kIpAt = 14, kIpv6Bytes = 40;
constexpr uint8_t kFragmentHeader = 44;

bool is_ipv4(ByteView frame) {
    return frame[kIpAt] >> 4 == 4;
}
size_t header_bytes(ByteView frame) {
    return is_ipv4(frame) ? size_t{frame[kIpAt] & 0x0fU} * 4 : kIpv6Bytes;
}
size_t packet_bytes(ByteView frame) {
    const auto word = [&](size_t at) { return size_t{frame[kIpAt + at]} << 8 | frame[kIpAt + at + 1]; };
    return is_ipv4(frame) ? word(2) : kIpv6Bytes + word(4);
}
void set_word(std::vector<uint8_t>& frame, size_t at, size_t value) {
    frame[at] = static_cast<uint8_t>(value >> 8);
    frame[at + 1] = static_cast<uint8_t>(value);
}

// Offset of the fragment header of an IPv6 packet; the packet's end if it has none.
size_t fragment_header_at(ByteView frame) {
    size_t at = kIpAt + kIpv6Bytes;
    for (uint8_t kind = frame[kIpAt + 6]; kind != kFragmentHeader; at += 8 + size_t{frame[at + 1]} * 8) {
        if (kind != 0 && kind != 43 && kind != 60) {
            return frame.size();
        }
        kind = frame[at];
        if (kind == kFragmentHeader) {
            return at + 8 + size_t{frame[at + 1]} * 8;
        }
    }
    return at;
}

}  // namespace

uint32_t id_of(ByteView frame) {
    const auto word = [&](size_t at) { return uint32_t{frame[at]} << 8 | frame[at + 1]; };
    if (is_ipv4(frame)) {
        return word(kIpAt + 4);
    }
    const size_t at = fragment_header_at(frame);
    return at == frame.size() ? 0 : word(at + 4) << 16 | word(at + 6);
}

std::vector<uint8_t> with_id(std::vector<uint8_t> frame, uint32_t id) {
    if (is_ipv4(frame)) {
        set_word(frame, kIpAt + 4, id & 0xffff);
        set_word(frame, kIpAt + 10, 0);
        set_word(frame, kIpAt + 10, reference_checksum(ByteView(frame).subspan(kIpAt, header_bytes(frame))));
    } else if (const size_t at = fragment_header_at(frame); at != frame.size()) {
        set_word(frame, at + 4, id >> 16);
        set_word(frame, at + 6, id & 0xffff);
    }
    return frame;
}

std::vector<uint8_t> fragment_like(ByteView like, uint32_t id, size_t begin, bool more, ByteView content) {
    const size_t header = header_bytes(like);
    std::vector<uint8_t> frame(like.begin(), like.begin() + static_cast<ptrdiff_t>(kIpAt + header));
    if (is_ipv4(like)) {
        set_word(frame, kIpAt + 2, header + content.size());
        set_word(frame, kIpAt + 4, id);
        set_word(frame, kIpAt + 6, begin / 8 | (more ? 0x2000U : 0U));
        set_word(frame, kIpAt + 10, 0);
        set_word(frame, kIpAt + 10, reference_checksum(ByteView(frame).subspan(kIpAt, header)));
    } else {
        const uint8_t next = frame[kIpAt + 6];
        frame[kIpAt + 6] = kFragmentHeader;
        set_word(frame, kIpAt + 4, 8 + content.size());
        frame.insert(frame.end(), {next, 0, 0, 0, 0, 0, 0, 0});
        set_word(frame, kIpAt + kIpv6Bytes + 2, begin | (more ? 1U : 0U));
        set_word(frame, kIpAt + kIpv6Bytes + 4, id >> 16);
        set_word(frame, kIpAt + kIpv6Bytes + 6, id & 0xffff);
    }
    frame.insert(frame.end(), content.begin(), content.end());
    return frame;
}

std::vector<std::vector<uint8_t>> cut(ByteView frame, uint32_t id, size_t bytes) {
    PENSTOCK_CHECK(bytes % 8 == 0 && bytes > 0);
    const size_t header = header_bytes(frame);
    const ByteView datagram = frame.subspan(kIpAt + header, packet_bytes(frame) - header);
    std::vector<std::vector<uint8_t>> fragments;
    for (size_t begin = 0; begin < datagram.size(); begin += bytes) {
        const size_t length = std::min(bytes, datagram.size() - begin);
        fragments.push_back(fragment_like(frame, id, begin, begin + length < datagram.size(),
                                          datagram.subspan(begin, length)));
    }
    return fragments;
}

}  // namespace penstock::test
