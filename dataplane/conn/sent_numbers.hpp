// The ACK numbers by which a client shows that it receives what its endpoint sends (docs/adr/0028). Kept only while that is in doubt: in a
// handshake, and behind a RST. A sender that does not see the endpoint's segments can only guess one of them.
#pragma once

#include <algorithm>
#include <cstdint>

namespace penstock::conn {

// A run of what the endpoint has sent, from `first` on, `span` numbers long: one number behind a SYN+ACK, more where data follows before
// the handshake is over (RFC 7413), or behind a RST. Or a pair, the first and the last number of a span over 2^31: those of two SYN+ACKs
// with different sequence numbers, as an endpoint with SYN cookies sends.
struct SentNumbers {
    // So much of a run's beginning is allowed, and its end. A receiver acknowledges each 64 KB at least, which is the most that its
    // offloads join; so the ACKs of a transfer, however much of it is in flight, meet 256 KB. Each number helps a guess: one in 16,384 hits
    // if the endpoint has sent 256 KB of which the client has acknowledged nothing.
    static constexpr uint32_t kAllowedMax = 1U << 18;
    static constexpr uint32_t kRunMax = 1U << 31;

    uint32_t first = 0;
    uint32_t span = 0;  // 0: nothing has been sent

    // A segment without SYN that begins at `begin` and ends before `end`. What lies before the run, or far behind it, is of an earlier
    // connection on the tuple, or a keepalive.
    constexpr void add(uint32_t begin, uint32_t end) noexcept {
        const uint32_t reach = end - first + 1;  // modulo 2^32, as sequence numbers are
        const bool continues = begin - first < span + kAllowedMax && reach != 0 && reach <= kRunMax;
        if (span == 0 || (is_pair() && begin != end)) {
            *this = {begin, end - begin + 1};
        } else if (!is_pair() && continues) {
            span = std::max(span, reach);
        }
    }
    // One with SYN; `begin` is the number behind the SYN.
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
