// SPDX-License-Identifier: Apache-2.0
#include "dataplane/packet/mss.hpp"

#include "dataplane/base/check.hpp"
#include "dataplane/packet/checksum.hpp"
#include "dataplane/packet/tcp_options.hpp"
#include "dataplane/packet/wire.hpp"

namespace penstock::packet {
namespace {

constexpr uint8_t kMss = 2, kMssBytes = 4;

// The checksum of a segment after its field at `at` has changed from `before` to `after`. A checksum adds
// 16-bit words of the segment. The bytes of a field at an odd offset belong to two words in exchanged
// positions; this equals adding the field byte-swapped (RFC 1071, 2.B).
Be16 sum_after(Be16 sum, size_t at, Be16 before, Be16 after) noexcept {
    const auto as_added = [&](Be16 value) {
        return at % 2 == 0 ? value : Be16::from_raw(__builtin_bswap16(value.raw()));
    };
    return FoldedDelta(ChecksumDelta().replace(as_added(before), as_added(after))).applied_to(sum);
}

}  // namespace

bool lower_mss(std::span<uint8_t> frame, const Parsed& parsed, uint16_t mss_max) noexcept {
    PENSTOCK_ASSERT(parsed.kind == PacketKind::Flow && parsed.key.protocol == Protocol::Tcp &&
                    parsed.payload_offset <= frame.size());
    uint8_t* const tcp = frame.data() + parsed.l4_offset;
    const size_t at = find_tcp_option(tcp, size_t{parsed.payload_offset} - parsed.l4_offset, kMss, kMssBytes);
    if (at == 0) {
        return false;  // no MSS option, or a malformed option list, which the receiver handles
    }
    uint8_t* const mss_at = tcp + at + 2;
    const auto offered = load<Be16>(mss_at);
    if (offered.host() <= mss_max) {
        return false;
    }
    const Be16 lowered = Be16::from_host(mss_max);
    store(mss_at, lowered);
    uint8_t* const sum_at = tcp + offsetof(TcpHeader, checksum);
    store(sum_at, sum_after(load<Be16>(sum_at), at + 2, offered, lowered));
    return true;
}

}  // namespace penstock::packet
