// SPDX-License-Identifier: Apache-2.0
// Connections of a worker by their client's prefix. fair_share.hpp compares the counts when the table is
// full.
#pragma once

#include <array>
#include <cstdint>

#include "dataplane/base/bytes.hpp"
#include "dataplane/base/cpu.hpp"
#include "dataplane/base/hash.hpp"
#include "dataplane/base/ip.hpp"
#include "dataplane/conn/table.hpp"

namespace penstock::pipeline {

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
[[nodiscard]] inline uint32_t prefix_slot_of(const conn::Entry& connection, const KeyedMix& mix) noexcept {
    using conn::Direction;
    return PrefixCounts::slot_of(connection.is_v6() ? IpAddr::v6(connection.v6_source(Direction::Forward))
                                                    : IpAddr::v4(connection.v4_source(Direction::Forward)),
                                 mix);
}

}  // namespace penstock::pipeline
