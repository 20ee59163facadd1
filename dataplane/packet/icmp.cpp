// SPDX-License-Identifier: Apache-2.0
#include "dataplane/packet/icmp.hpp"

#include <algorithm>
#include <cstring>

#include "dataplane/base/check.hpp"
#include "dataplane/packet/answers/answer.hpp"

namespace penstock::packet {
namespace {

// Precedence 6, internetwork control: RFC 1812, 4.3.2.5 requires it for unreachable and time exceeded. The
// same bits are used in IPv6's traffic class.
constexpr uint8_t kTosInternetworkControl = 0xc0;

constexpr size_t kQuotedL4BytesMin = 8;

}  // namespace

AnswerResult make_icmp_error(std::span<uint8_t> buffer, [[maybe_unused]] size_t frame_bytes,
                             const Parsed& parsed, IcmpError error, const IpAddr& source) noexcept {
    PENSTOCK_ASSERT(frame_bytes <= buffer.size() &&
                    size_t{parsed.l3_offset} + parsed.l3_length <= frame_bytes);
    const uint16_t ip_header_bytes = answer_header_bytes(parsed.family);
    const size_t headers_bytes = ip_header_bytes + sizeof(IcmpHeader);
    const size_t quote_at = parsed.l3_offset + headers_bytes;
    const size_t quote_must = size_t{parsed.l4_offset} - parsed.l3_offset + kQuotedL4BytesMin;
    // Long extension headers can exceed this.
    const size_t quote_may = icmp_error_bytes_max(parsed.family) - headers_bytes;
    if (parsed.l3_length < quote_must || quote_may < quote_must || buffer.size() < quote_at + quote_must) {
        return std::unexpected(DropReason::RejectNotAllowed);
    }
    const size_t quote_bytes = std::min({size_t{parsed.l3_length}, quote_may, buffer.size() - quote_at});
    std::memmove(buffer.data() + quote_at, buffer.data() + parsed.l3_offset, quote_bytes);

    const IpAddr& destination = parsed.key.source;
    const uint8_t protocol = parsed.family == IpFamily::V4 ? kProtoIcmp : kProtoIcmpv6;
    const auto icmp_bytes = static_cast<uint16_t>(sizeof(IcmpHeader) + quote_bytes);
    uint8_t* const ip_at = buffer.data() + parsed.l3_offset;
    uint8_t* const icmp_at = ip_at + ip_header_bytes;
    IcmpHeader icmp{.type = error.type, .code = error.code, .rest = Be32::from_host(error.rest)};
    store(icmp_at, icmp);
    ChecksumSum sum;
    if (parsed.family == IpFamily::V6) {
        sum.add_pseudo_header(source, destination, protocol,
                              icmp_bytes);  // RFC 4443, 2.3; IPv4's ICMP has none
    }
    icmp.checksum = sum.add(ByteView(icmp_at, icmp_bytes)).checksum();
    store(icmp_at, icmp);
    store_answer_header(ip_at, source, destination, protocol, kTosInternetworkControl, icmp_bytes);
    exchange_ethernet(buffer);
    return static_cast<uint16_t>(quote_at + quote_bytes);
}

}  // namespace penstock::packet
