// SPDX-License-Identifier: Apache-2.0
// rte_hash, DPDK's own hash table, as the yardstick: keys of 16 bytes, rte_hash_crc, no flags, on hugepages
// of EAL. Contains both keys of each connection. The state of a connection is a separate line, indexed by the
// position that rte_hash returns for a key.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "perf/harness/memory.hpp"

struct rte_hash;

namespace penstock::perf {

// An IPv4 five-tuple in 16 bytes.
struct RteKey {
    uint32_t source;
    uint32_t destination;
    uint16_t source_port;
    uint16_t destination_port;
    uint32_t protocol;
};
static_assert(sizeof(RteKey) == 16);

// Starts EAL without devices, files or telemetry; once. Ends the program on failure.
void start_eal();

struct alignas(64) StateLine {
    std::array<uint64_t, 8> words;
};

class RteYardstick {
 public:
    static constexpr uint32_t kBurst = 32;

    // Sized so that `keys` fill 90 % of its slots.
    explicit RteYardstick(uint32_t keys);
    ~RteYardstick();
    RteYardstick(const RteYardstick&) = delete;
    RteYardstick& operator=(const RteYardstick&) = delete;

    // False if no slot could be made free.
    [[nodiscard]] bool add(const RteKey& key) noexcept;
    [[nodiscard]] bool erase(const RteKey& key) noexcept;
    [[nodiscard]] uint32_t size() const noexcept;
    // rte_hash rounds its number of slots up to a power of two, so its load may be lower than requested.
    [[nodiscard]] double load() const noexcept;
    [[nodiscard]] static size_t memory_needed(uint32_t keys) noexcept;

    // Looks the burst up and returns the number of hits. Not inlined, because rte_hash_lookup_bulk is a call
    // for every user.
    uint32_t lookup(std::span<const RteKey> keys) noexcept;
    // Also reads and writes one word in the state line of each hit's connection. Two keys share one line:
    // they were added one after the other, so their positions differ in the lowest bit, and rte_hash reuses
    // positions in the order of their release.
    uint32_t lookup_with_state(std::span<const RteKey> keys) noexcept;

 private:
    rte_hash* hash_;
    uint32_t slots_;
    HugeMemory states_;
};

}  // namespace penstock::perf
