// Shares of a worker's connection table. Connections are counted by Service (stats::ServiceCounters) and by
// the client's prefix, when they open and when they end. Packets in between cost nothing. The counts are
// compared only when the table is full: neither a Service nor a prefix that holds most of it keeps the others
// out (docs/adr/0028).
#pragma once

#include <array>
#include <cstdint>

#include "dataplane/base/bytes.hpp"
#include "dataplane/base/cpu.hpp"
#include "dataplane/base/hash.hpp"
#include "dataplane/base/ids.hpp"
#include "dataplane/base/ip.hpp"
#include "dataplane/base/time.hpp"
#include "dataplane/conn/aging.hpp"
#include "dataplane/conn/table.hpp"

namespace penstock::pipeline {

struct WorkerContext;

// Connections held by the clients of one /24, or of one /56 for IPv6. That is the usual assignment to a site,
// so the smallest range of an attacker that uses addresses of its own. Prefixes share counters by a keyed
// hash. 4,096 counters take 16 KB. Random sources that fill the default table put 64 into each, so that a
// prefix with more than twice as many stands out by 8 standard deviations.
class PrefixCounts {
 public:
    static constexpr uint32_t kSlots = 4'096;

    PENSTOCK_ALWAYS_INLINE static uint32_t slot_of(const IpAddr& client, const KeyedMix& mix) noexcept {
        const bool is_v4 = client.is_v4();
        const uint64_t head = load<uint64_t>(client.bytes().data()) & 0x00ff'ffff'ffff'ffff;
        const uint64_t tail = load<uint64_t>(client.bytes().data() + 8) & 0x00ff'ffff'ffff'ffff;
        return static_cast<uint32_t>(mix.of(head, is_v4 ? tail : 0) >> 52);
    }
    void add(uint32_t slot) noexcept { ++counts_[slot]; }
    void subtract(uint32_t slot) noexcept { --counts_[slot]; }
    [[nodiscard]] uint32_t of(uint32_t slot) const noexcept { return counts_[slot]; }

 private:
    static_assert(kSlots == 1U << (64 - 52));
    std::array<uint32_t, kSlots> counts_{};
};

// The counter slot for a connection of the table.
[[nodiscard]] uint32_t prefix_slot_of(const conn::Entry& connection, const KeyedMix& mix) noexcept;

// Rates the connections of a full table for eviction in favour of a new connection of `service` from
// `client`. As conn::worth_of(), with two further rules.
//
// A long-lived UDP flow may be evicted (Worth::Surplus) if its Service holds more than twice what the new
// connection's Service would hold, or its prefix more than twice what the new connection's prefix would hold.
// Under a flood each other Service and each other prefix thus gets room until it holds half as much as the
// largest holder: a third of the table, if there are two. UDP has no sign that a client receives the answers.
// Established TCP and SCTP have one, so they are never evicted.
//
// A flow that is half-open, unanswered or brief, and younger than kHandshakeS, is not evicted for a new flow
// of a holder more than twice as large. Otherwise a flood would cycle through the whole table before the
// handshake is finished.
class FairShare {
 public:
    FairShare(const WorkerContext& ctx, ServiceId service, const IpAddr& client) noexcept;
    [[nodiscard]] conn::Appraisal appraise(const conn::Entry& connection) const noexcept;
    [[nodiscard]] conn::Appraiser appraiser() const noexcept {
        return {[](const void* self, const conn::Entry& connection) noexcept {
                    return static_cast<const FairShare*>(self)->appraise(connection);
                },
                this};
    }

 private:
    // One initial retransmission (RFC 6298, 2.1: 1 s) and an ordinary round trip.
    static constexpr uint32_t kHandshakeS = 3;
    // Fewer connections than this may belong to a single household. They never count as too many, whatever
    // others hold.
    static constexpr uint32_t kPrefixFloor = 16;

    [[nodiscard]] static bool is_larger(uint32_t holder, uint32_t other) noexcept {
        return holder / 2 > other;
    }

    const WorkerContext& ctx_;
    int32_t handshake_units_;
    // held by the new connection's Service and prefix, the new one included
    uint32_t of_service_, of_prefix_;
};

}  // namespace penstock::pipeline
