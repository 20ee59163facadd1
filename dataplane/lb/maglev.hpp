// Maglev consistent hashing (Eisenbud et al., NSDI 2016, section 3.4): a ring of backend indices in which every backend holds nearly the
// same share, and the loss of one of n backends moves about 1/n of the clients.
//
// The ring's slots go to the backends in turns, each taking the next free slot of its own pseudo-random order. A departure
// changes who takes what in later turns too, and how much that adds to 1/n depends on slots / n^2, not on slots / n: with 100 slots a
// backend it is less than another 1/n up to some 40 backends only. And two rings of different sizes have nothing in common. So a ring is
// larger than fair shares alone would need, and where the number of backends asks for the next larger size, clients move over little by
// little:
//
//   backends     1 .. 10         11 .. 159              160 .. 320      321 .. 5119            5120 ..
//   slots        16,381          both, by share         262,139         both, by share         1,048,573
//
// One change of n backends then moves at most 2/n of the clients up to about 250 backends (SCHED-004;
// tests/property/maglev_property_test.cpp measures it), about 4/n at 700 and 9/n at 10,000. A slot takes four bytes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "dataplane/lb/backend.hpp"

namespace penstock::lb {

class MaglevRing {
 public:
    MaglevRing() = default;  // empty: pick() must not be called

    // Deterministic in the backends' addresses, ports and weights alone, so every gateway, worker and restart agrees (SCHED-004). Shares
    // follow the weights; a backend of weight 0 gets none, unless all have 0: then all share alike, because a flow must go somewhere.
    // Control thread; time is in the order of slots x log(slots): 0.3 ms, 6 ms and 40 ms for the three sizes on a 2-GHz core.
    static MaglevRing build(std::span<const Backend> backends);

    [[nodiscard]] bool empty() const noexcept { return ring_.empty(); }
    [[nodiscard]] uint32_t size() const noexcept { return static_cast<uint32_t>(ring_.size()); }
    // Index into the backends that build() was given. One read; any worker. `hash` is uniform in all its bits: the high ones choose the
    // slot, the low ones the ring.
    [[nodiscard]] uint32_t pick(uint64_t hash) const noexcept {
        const bool in_second = (hash & (kShareOne - 1)) < second_share_;
        const uint32_t first = in_second ? first_size_ : 0;
        const uint32_t slots = in_second ? size() - first_size_ : first_size_;
        return ring_[first + static_cast<uint32_t>((static_cast<unsigned __int128>(hash) * slots) >> 64)];
    }

 private:
    static constexpr uint32_t kShareOne = 1u << 16;

    std::vector<uint32_t> ring_;  // the first ring, then the second where there is one
    uint32_t first_size_ = 0;
    uint32_t second_share_ = 0;  // of kShareOne
};

}  // namespace penstock::lb
