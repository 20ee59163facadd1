// SPDX-License-Identifier: Apache-2.0
// A bounded queue of records, from one worker to the thread that reads the capture. Slots have a fixed size:
// a Record, and the first bytes of the frame. The worker stages records, which the reader does not see yet,
// and publishes or takes back what it has staged. A full ring is an ordinary result: the record is lost, and
// the next one counts it.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>

#include "dataplane/base/cpu.hpp"
#include "dataplane/capture/record.hpp"

namespace penstock::capture {

class RecordRing {
 public:
    // `slots`: a power of two. Frames are cut to `snap_bytes`.
    RecordRing(uint32_t slots, uint32_t snap_bytes)
        : mask_(slots - 1),
          snap_bytes_(snap_bytes),
          stride_((sizeof(Record) + snap_bytes + alignof(Record) - 1) / alignof(Record) * alignof(Record)),
          memory_(new std::byte[slots * stride_]) {}

    // --- worker ---

    // Copies the frame behind `record`, whose `bytes` and `lost_before` it sets. False: the ring is full, and
    // the record is lost.
    bool stage(Record record, const uint8_t* frame) noexcept {
        // Acquire: pairs with read(). The slot may be overwritten once it has been read.
        if (staged_ - head_.load(std::memory_order_acquire) > mask_) {
            lose(1);
            return false;
        }
        record.bytes = std::min(record.wire_bytes, snap_bytes_);
        record.lost_before = lost_now_ - lost_noted_;
        lost_noted_ = lost_now_;
        std::byte* const slot = slot_at(staged_);
        std::memcpy(slot, &record, sizeof record);
        std::memcpy(slot + sizeof record, frame, record.bytes);
        ++staged_;
        return true;
    }
    // Takes back the last `count` staged records. Their `lost_before` passes to the next record.
    void take_back(uint32_t count) noexcept {
        for (; count > 0; --count) {
            Record record;
            std::memcpy(&record, slot_at(--staged_), sizeof record);
            lost_noted_ -= record.lost_before;
        }
    }
    void publish() noexcept { tail_.store(staged_, std::memory_order_release); }  // pairs with read()
    // Counts records that are lost without an attempt to store them.
    void lose(uint64_t count) noexcept {
        lost_now_ += count;
        lost_.store(lost_now_, std::memory_order_relaxed);
    }
    // At least three quarters, or at most one quarter, of the slots are in use.
    [[nodiscard]] bool is_nearly_full() const noexcept { return in_use() >= slots() / 4 * 3; }
    [[nodiscard]] bool is_nearly_empty() const noexcept { return in_use() <= slots() / 4; }

    // --- reader ---

    // Calls visit(record, frame bytes) for each published record, at most `max`. Returns their number.
    template <typename Visit>
    uint32_t read(uint32_t max, Visit&& visit) {
        uint32_t head = head_.load(std::memory_order_relaxed);
        const uint32_t count = std::min(max, tail_.load(std::memory_order_acquire) - head);
        for (uint32_t i = 0; i < count; ++i, ++head) {
            Record record;
            const std::byte* const slot = slot_at(head);
            std::memcpy(&record, slot, sizeof record);
            visit(record, std::span(reinterpret_cast<const uint8_t*>(slot) + sizeof record, record.bytes));
        }
        head_.store(head, std::memory_order_release);
        return count;
    }

    // Any thread: records lost so far.
    [[nodiscard]] uint64_t lost() const noexcept { return lost_.load(std::memory_order_relaxed); }
    [[nodiscard]] uint32_t slots() const noexcept { return mask_ + 1; }

 private:
    [[nodiscard]] std::byte* slot_at(uint32_t position) const noexcept {
        return memory_.get() + (position & mask_) * stride_;
    }
    [[nodiscard]] uint32_t in_use() const noexcept { return staged_ - head_.load(std::memory_order_relaxed); }

    const uint32_t mask_;
    const uint32_t snap_bytes_;
    const size_t stride_;
    const std::unique_ptr<std::byte[]> memory_;
    uint32_t staged_ = 0;  // worker only, as the next two
    uint64_t lost_now_ = 0;
    uint64_t lost_noted_ = 0;  // of these, noted in a record
    std::atomic<uint64_t> lost_{0};
    alignas(kCacheLine) std::atomic<uint32_t> tail_{0};
    alignas(kCacheLine) std::atomic<uint32_t> head_{0};
};

}  // namespace penstock::capture
