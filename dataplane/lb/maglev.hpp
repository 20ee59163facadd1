// Maglev consistent hashing (Eisenbud et al., NSDI 2016, section 3.4): a ring of backend indices in which every backend holds nearly the
// same share, and the loss of one of n backends moves about 1/n of the clients.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "dataplane/lb/backend.hpp"

namespace penstock::lb {

class MaglevRing {
   public:
    MaglevRing() = default;  // empty: pick() must not be called

    // Deterministic in the backends' addresses, ports and weights alone, so every gateway, worker and restart agrees (SCHED-004).
    // The size is the smallest listed prime >= 100 x the sum of weights (at least 251), so that shares differ by about 1 %.
    // Control thread; O(size).
    static MaglevRing build(std::span<const Backend> backends);

    [[nodiscard]] bool empty() const noexcept { return ring_.empty(); }
    [[nodiscard]] uint32_t size() const noexcept { return static_cast<uint32_t>(ring_.size()); }
    // Index into the backends that build() was given. One read; any worker.
    [[nodiscard]] uint32_t pick(uint64_t hash) const noexcept {
        return ring_[static_cast<uint32_t>((static_cast<unsigned __int128>(hash) * ring_.size()) >> 64)];
    }

   private:
    std::vector<uint32_t> ring_;
};

}  // namespace penstock::lb
