// SPDX-License-Identifier: Apache-2.0
#include "dataplane/packet/checksum.hpp"

namespace penstock::packet {

ChecksumSum& ChecksumSum::add(ByteView bytes) noexcept {
    const uint8_t* at = bytes.data();
    size_t left = bytes.size();
    for (; left >= 4; at += 4, left -= 4) {
        sum_ += load<uint32_t>(at);
    }
    if (left >= 2) {
        sum_ += load<uint16_t>(at);
        at += 2;
        left -= 2;
    }
    if (left == 1) {
        // The first byte of a word in memory is the low one on the little-endian hosts that bytes.hpp
        // asserts.
        sum_ += *at;
    }
    return *this;
}

ChecksumSum& ChecksumSum::add_pseudo_header(const IpAddr& source, const IpAddr& destination, uint8_t protocol,
                                            uint16_t l4_bytes) noexcept {
    const size_t from = source.is_v4() ? 12 : 0;
    add(ByteView(source.bytes()).subspan(from));
    add(ByteView(destination.bytes()).subspan(from));
    return add(Be16::from_host(protocol)).add(Be16::from_host(l4_bytes));
}

}  // namespace penstock::packet
