// SPDX-License-Identifier: Apache-2.0
// The ACK numbers by which a client proves that it receives the segments of its endpoint (docs/adr/0028).
// They are kept only during a handshake and behind a RST, when this is not yet certain. A sender that does
// not see the endpoint's segments can only guess one of these numbers.
#pragma once

#include <algorithm>
#include <cstdint>

namespace penstock::conn {

// A range of sequence numbers that the endpoint has sent: `span` numbers from `first` on. It is the one
// number after a SYN+ACK, and more if data follows before the handshake is over (RFC 7413), or behind a RST.
// Alternatively a pair: the first and the last number of a span over 2^31. These are the numbers of two
// SYN+ACKs with different sequence numbers, as an endpoint with SYN cookies sends them.
struct SentNumbers {
    // This many numbers at the start of a range are allowed, and the end of the range. A receiver
    // acknowledges at least every 64 KB, the largest amount that its offloads merge. The ACKs of a transfer
    // therefore fall into 256 KB, however much of it is in flight. Each allowed number helps a guess: one
    // guess in 16,384 hits if the endpoint has sent 256 KB of which the client has acknowledged nothing.
    static constexpr uint32_t kAllowedMax = 1U << 18;
    static constexpr uint32_t kRunMax = 1U << 31;

    uint32_t first = 0;
    uint32_t span = 0;  // 0: nothing has been sent

    // Adds a segment without SYN that starts at `begin` and ends before `end`. A segment before the range, or
    // far behind it, belongs to an earlier connection on the tuple, or is a keepalive.
    constexpr void add(uint32_t begin, uint32_t end) noexcept {
        const uint32_t reach = end - first + 1;  // modulo 2^32, as sequence numbers are
        const bool continues = begin - first < span + kAllowedMax && reach != 0 && reach <= kRunMax;
        if (span == 0 || (is_pair() && begin != end)) {
            *this = {begin, end - begin + 1};
        } else if (!is_pair() && continues) {
            span = std::max(span, reach);
        }
    }
    // Adds a segment with SYN; `begin` is the number after the SYN.
    constexpr void add_answer(uint32_t begin, uint32_t end) noexcept {
        if (span == 0 || begin == first) {
            return add(begin, end);
        }
        const bool is_behind = begin - first < kRunMax;
        *this = is_behind ? SentNumbers{begin, first - begin + 1} : SentNumbers{first, begin - first + 1};
    }
    [[nodiscard]] constexpr bool allow(uint32_t ack) const noexcept {
        const uint32_t distance = ack - first;
        return span != 0 &&
               (distance < (is_pair() ? 1 : std::min(span, kAllowedMax)) || distance == span - 1);
    }
    bool operator==(const SentNumbers&) const = default;

 private:
    [[nodiscard]] constexpr bool is_pair() const noexcept { return span > kRunMax; }
};

}  // namespace penstock::conn
