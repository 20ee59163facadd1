// SPDX-License-Identifier: Apache-2.0
// Consistent hashing: a ring of backend indices in which every backend has its share, and the removal of one
// of n backends moves about 1/n of the clients. Small sets are filled as in Maglev (Eisenbud et al., NSDI
// 2016, section 3.4), large ones by weighted rendezvous hashing.
//
// Turns: the slots are assigned in rounds, in which each backend takes the next free slot of its own
// pseudo-random order. Shares are nearly equal, but a removal also changes the assignments of later rounds:
// every other backend gains its part of at most one slot, so about n further slots change, which is (n^2 /
// slots) / n of the clients. For 10,000 backends, 3 x 10^8 slots would be needed to keep that below another
// 1/n. With rendezvous (rendezvous.hpp) a removal moves only the removed backend's share, for any n, and
// shares vary as in random draws. Rings of different sizes have nothing in common. So when the number of
// backends requires the next size, clients move over gradually:
//
//   backends            slots            method
//   1 .. 10             16,381           turns
//   11 .. 159           16,381 and 2^18  both, by share
//   160 .. 640          2^18             rendezvous
//   641 .. 10,239       2^18 and 2^20    both, by share
//   10,240 .. 16,384    2^20             rendezvous
//   16,385 .. 262,143   2^20 and 2^23    both, by share
//   262,144 ..          2^23             rendezvous
//
// A change of one of n backends moves at most 2/n of the clients up to 10,000 backends (SCHED-004; measured
// by tests/property/maglev_property_test.cpp). Shares differ from the fair one by 1 % if only turns are used,
// otherwise with a standard deviation of sqrt(n / 2 slots): 2.5 % at 320 backends, 7 % at 10,000. A slot
// takes four bytes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "dataplane/lb/backend.hpp"

namespace penstock::lb {

class MaglevRing {
 public:
    MaglevRing() = default;  // empty: pick() must not be called

    // Depends only on the backends' addresses, ports and weights, so every gateway, worker and restart builds
    // the same ring (SCHED-004). Shares follow the weights. A backend of weight 0 gets no share, unless all
    // weights are 0: then all shares are equal, because a flow must have a backend. Control thread;
    // docs/performance.md has the time it takes.
    static MaglevRing build(std::span<const Backend> backends);

    [[nodiscard]] bool empty() const noexcept { return ring_.empty(); }
    [[nodiscard]] uint32_t size() const noexcept { return static_cast<uint32_t>(ring_.size()); }
    // Index into the backends given to build(). One read; any worker. `hash` is uniform in all bits: the high
    // ones select the slot, the low ones the ring.
    [[nodiscard]] uint32_t pick(uint64_t hash) const noexcept {
        const bool in_second = (hash & (kShareOne - 1)) < second_share_;
        const uint32_t first = in_second ? first_size_ : 0;
        const uint32_t slots = in_second ? size() - first_size_ : first_size_;
        return ring_[first + static_cast<uint32_t>((static_cast<unsigned __int128>(hash) * slots) >> 64)];
    }

 private:
    static constexpr uint32_t kShareOne = 1u << 16;

    std::vector<uint32_t> ring_;  // the first ring, followed by the second one, if any
    uint32_t first_size_ = 0;
    uint32_t second_share_ = 0;  // of kShareOne
};

}  // namespace penstock::lb
