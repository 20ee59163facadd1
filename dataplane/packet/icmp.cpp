#include "dataplane/packet/icmp.hpp"

#include <algorithm>
#include <cstring>

#include "dataplane/base/check.hpp"
#include "dataplane/packet/answer.hpp"

namespace penstock::packet {
namespace {

// Precedence 6, internetwork control, as RFC 1812, 4.3.2.5 asks of unreachable and time exceeded.
constexpr uint8_t kTosInternetworkControl = 0xc0;

constexpr size_t kHeadersBytes = sizeof(Ipv4Header) + sizeof(IcmpHeader);
constexpr size_t kQuotedL4BytesMin = 8;

}  // namespace

AnswerResult make_icmp_error(std::span<uint8_t> buffer, size_t frame_bytes, const Parsed& parsed, IcmpError error,
                             const IpAddr& source) noexcept {
    PENSTOCK_ASSERT(frame_bytes <= buffer.size() && size_t{parsed.l3_offset} + parsed.l3_length <= frame_bytes);
    const size_t quote_at = parsed.l3_offset + kHeadersBytes;
    const size_t quote_must = size_t{parsed.l4_offset} - parsed.l3_offset + kQuotedL4BytesMin;
    if (parsed.l3_length < quote_must || buffer.size() < quote_at + quote_must) {
        return std::unexpected(DropReason::RejectNotAllowed);
    }
    const size_t quote_bytes = std::min({size_t{parsed.l3_length}, size_t{kIcmpErrorBytesMax} - kHeadersBytes, buffer.size() - quote_at});
    std::memmove(buffer.data() + quote_at, buffer.data() + parsed.l3_offset, quote_bytes);

    IcmpHeader icmp{.type = error.type, .code = error.code};
    uint8_t* const icmp_at = buffer.data() + parsed.l3_offset + sizeof(Ipv4Header);
    store(icmp_at, icmp);
    const size_t icmp_bytes = sizeof(IcmpHeader) + quote_bytes;
    icmp.checksum = ChecksumSum().add(ByteView(icmp_at, icmp_bytes)).checksum();
    store(icmp_at, icmp);

    const auto total_bytes = static_cast<uint16_t>(sizeof(Ipv4Header) + icmp_bytes);
    store(buffer.data() + parsed.l3_offset, answer_header(source, parsed.key.source, kProtoIcmp, kTosInternetworkControl, total_bytes));
    exchange_ethernet(buffer);
    return static_cast<uint16_t>(parsed.l3_offset + total_bytes);
}

}  // namespace penstock::packet
