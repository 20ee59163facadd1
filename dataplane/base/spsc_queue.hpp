// SPDX-License-Identifier: Apache-2.0
// A bounded lock-free queue of small values from one thread to another, for values that are not packets
// (packets use rte_ring). A full queue is an ordinary result, because a worker must never block: push()
// returns false and the writer drops the value.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <type_traits>

#include "dataplane/base/cpu.hpp"

namespace penstock {

template <typename T, uint32_t kCapacity>
class SpscQueue {
    static_assert((kCapacity & (kCapacity - 1)) == 0, "positions wrap by mask");
    static_assert(std::is_trivially_copyable_v<T>);

 public:
    // Writer only. Returns false, and writes nothing, if the queue is full.
    bool push(const T& value) noexcept {
        const uint32_t tail = tail_.load(std::memory_order_relaxed);
        // Acquire: pairs with pop's release (the slot has been read).
        if (tail - head_.load(std::memory_order_acquire) == kCapacity) {
            return false;
        }
        slots_[tail & (kCapacity - 1)] = value;
        tail_.store(tail + 1, std::memory_order_release);  // pairs with pop's acquire: the slot is written
        return true;
    }
    // Reader only.
    std::optional<T> pop() noexcept {
        const uint32_t head = head_.load(std::memory_order_relaxed);
        if (head == tail_.load(std::memory_order_acquire)) {
            return std::nullopt;
        }
        const T value = slots_[head & (kCapacity - 1)];
        head_.store(head + 1, std::memory_order_release);
        return value;
    }

 private:
    alignas(kCacheLine) std::atomic<uint32_t> tail_{0};
    alignas(kCacheLine) std::atomic<uint32_t> head_{0};
    alignas(kCacheLine) std::array<T, kCapacity> slots_{};
};

}  // namespace penstock
