// SPDX-License-Identifier: Apache-2.0
// rte_hash with the interface of population.hpp.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "perf/harness/rte_yardstick.hpp"
#include "perf/micro/connections.hpp"

namespace penstock::perf {

class RteStore {
 public:
    using Key = RteKey;
    explicit RteStore(uint32_t connections) : yardstick_(connections * 2) {}
    static size_t memory_needed(uint32_t connections) noexcept {
        return RteYardstick::memory_needed(connections * 2);
    }
    static Key key(uint32_t number, conn::Direction direction) noexcept { return rte_key(number, direction); }

    bool insert(uint32_t, uint32_t number) noexcept {
        return yardstick_.add(rte_key(number, conn::Direction::Forward)) &&
               yardstick_.add(rte_key(number, conn::Direction::Reverse));
    }
    void erase(uint32_t, uint32_t number) noexcept {
        (void)yardstick_.erase(rte_key(number, conn::Direction::Forward));
        (void)yardstick_.erase(rte_key(number, conn::Direction::Reverse));
    }
    template <bool kWithState>
    uint32_t lookup(std::span<const Key> keys) noexcept {
        return kWithState ? yardstick_.lookup_with_state(keys) : yardstick_.lookup(keys);
    }
    [[nodiscard]] double load() const noexcept { return yardstick_.load(); }

 private:
    RteYardstick yardstick_;
};

}  // namespace penstock::perf
