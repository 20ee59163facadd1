// SPDX-License-Identifier: Apache-2.0
#include "perf/harness/rte_yardstick.hpp"

#include <sched.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_hash.h>
#include <rte_hash_crc.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "perf/harness/report.hpp"

namespace penstock::perf {
namespace {

uint32_t entries_for(uint32_t keys) {
    return std::max<uint32_t>(static_cast<uint32_t>(uint64_t{keys} * 10 / 9) + 1, 64);
}

}  // namespace

void start_eal() {
    static bool started = false;
    if (started) {
        return;
    }
    started = true;
    std::vector<std::string> words = {"bench",          "--in-memory", "--no-pci",
                                      "--no-telemetry", "-l",          std::to_string(sched_getcpu()),
                                      "--log-level",    "error"};
    const auto start = [](std::vector<std::string> arguments) {
        std::vector<char*> argv;
        for (std::string& word : arguments) {
            argv.push_back(word.data());
        }
        return rte_eal_init(static_cast<int>(argv.size()), argv.data()) >= 0;
    };
    if (!start(words)) {
        std::fprintf(stderr, "rte_eal_init: %s; rte_hash needs hugepages (scripts/bench reserves them)\n",
                     rte_strerror(rte_errno));
        std::exit(1);
    }
}

RteYardstick::RteYardstick(uint32_t keys)
    : slots_(std::bit_ceil(entries_for(keys))), states_(sizeof(StateLine) * (entries_for(keys) / 2 + 1)) {
    static int number = 0;
    const std::string name = "yardstick" + std::to_string(number++);
    rte_hash_parameters parameters{};
    parameters.name = name.c_str();
    parameters.entries = entries_for(keys);
    parameters.key_len = sizeof(RteKey);
    parameters.hash_func = rte_hash_crc;
    hash_ = rte_hash_create(&parameters);
    if (hash_ == nullptr) {
        std::fprintf(stderr, "rte_hash_create for %u keys: %s\n", keys, rte_strerror(rte_errno));
        std::exit(1);
    }
}

RteYardstick::~RteYardstick() {
    rte_hash_free(hash_);
}

size_t RteYardstick::memory_needed(uint32_t keys) noexcept {
    // A slot: 8 bytes of bucket, 4 of the ring of free positions. A key: 32 with its data pointer and
    // padding, and half a state line.
    return size_t{std::bit_ceil(entries_for(keys))} * 12 +
           size_t{entries_for(keys)} * (32 + sizeof(StateLine) / 2);
}

bool RteYardstick::add(const RteKey& key) noexcept {
    return rte_hash_add_key(hash_, &key) >= 0;
}
bool RteYardstick::erase(const RteKey& key) noexcept {
    return rte_hash_del_key(hash_, &key) >= 0;
}
uint32_t RteYardstick::size() const noexcept {
    return static_cast<uint32_t>(rte_hash_count(hash_));
}
double RteYardstick::load() const noexcept {
    return static_cast<double>(size()) / slots_;
}

uint32_t RteYardstick::lookup(std::span<const RteKey> keys) noexcept {
    std::array<const void*, kBurst> pointers;
    std::array<int32_t, kBurst> positions;
    for (uint32_t i = 0; i < kBurst; ++i) {
        pointers[i] = &keys[i];
    }
    rte_hash_lookup_bulk(hash_, pointers.data(), kBurst, positions.data());
    uint32_t hits = 0;
    for (const int32_t position : positions) {
        hits += position >= 0 ? 1 : 0;
    }
    return hits;
}

uint32_t RteYardstick::lookup_with_state(std::span<const RteKey> keys) noexcept {
    std::array<const void*, kBurst> pointers;
    std::array<int32_t, kBurst> positions;
    for (uint32_t i = 0; i < kBurst; ++i) {
        pointers[i] = &keys[i];
    }
    rte_hash_lookup_bulk(hash_, pointers.data(), kBurst, positions.data());
    const std::span<StateLine> states = states_.as<StateLine>();
    uint32_t hits = 0;
    for (const int32_t position : positions) {
        if (position >= 0) {
            __builtin_prefetch(&states[static_cast<uint32_t>(position) / 2], 1);
        }
    }
    for (const int32_t position : positions) {
        if (position >= 0) {
            states[static_cast<uint32_t>(position) / 2].words[0] += 1;
            ++hits;
        }
    }
    return hits;
}

}  // namespace penstock::perf
