// Consistent hashing: a ring of backend indices in which every backend holds its share, and the loss of one of n backends moves about 1/n
// of the clients. Small sets are filled as Maglev fills its ring (Eisenbud et al., NSDI 2016, section 3.4), large ones by weighted
// rendezvous.
//
// By turns: the slots go to the backends in rounds, each taking the next free slot of its own pseudo-random order. Shares are all but
// equal, but a departure changes who takes what in later rounds too: every other backend has to gain its part of one slot or none, so
// some n slots more change hands, which is (n^2 / slots) / n of the clients. 10,000 backends would need 3 x 10^8 slots to keep that below
// another 1/n. By rendezvous (rendezvous.hpp) a departure moves its own share and nothing else, whatever n, and shares differ as random
// draws do. Rings of different sizes have nothing in common; so where the number of backends asks for the next size, clients move over
// little by little:
//
//   backends     1 .. 10      11 .. 159     160 .. 640     641 .. 10,239    10,240 .. 16,384    16,385 .. 262,143    262,144 ..
//   slots        16,381       both, by      2^18           both, by         2^20                both, by             2^23
//                by turns     share         rendezvous     share            rendezvous          share                rendezvous
//
// One change of n backends moves at most 2/n of the clients up to 10,000 backends (SCHED-004; tests/property/maglev_property_test.cpp
// measures it). Shares differ from the fair one by 1 % where turns alone decide, else with a standard deviation of sqrt(n / 2 slots): 2.5 %
// at 320 backends, 7 % at 10,000. A slot takes four bytes.
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
    // Control thread; how long it takes is in docs/performance.md.
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
