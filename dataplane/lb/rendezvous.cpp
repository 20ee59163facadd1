// SPDX-License-Identifier: Apache-2.0
#include "dataplane/lb/rendezvous.hpp"

#include <algorithm>
#include <bit>
#include <numeric>

#include "dataplane/base/bytes.hpp"
#include "dataplane/base/check.hpp"
#include "dataplane/base/hash.hpp"

namespace penstock::lb {
namespace {

// Public and fixed: all gateways and restarts must build the same table.
constexpr HashKey kVisitKey{0x72656e64657a0001ULL, 0x7669736974730001ULL};

// Time units between two visits of a backend of weight 1.
constexpr uint64_t kUnitsPerVisit = uint64_t{1} << 40;
constexpr uint64_t kVisitsPerSlot = 4;

// SplitMix64 with a seed for each backend: the visits of one backend are a sequence, and those of two
// backends are independent.
class Visits {
 public:
    explicit Visits(const Backend& backend)
        : state_(siphash13<3>(
              kVisitKey, {load<uint64_t>(backend.address.bytes().data()),
                          load<uint64_t>(backend.address.bytes().data() + 8), uint64_t{backend.port}})) {}
    uint64_t next() noexcept {
        state_ += 0x9e3779b97f4a7c15ULL;
        uint64_t out = (state_ ^ (state_ >> 30)) * 0xbf58476d1ce4e5b9ULL;
        out = (out ^ (out >> 27)) * 0x94d049bb133111ebULL;
        return out ^ (out >> 31);
    }

 private:
    uint64_t state_;
};

}  // namespace

void append_rendezvous(std::span<const Backend> backends, uint32_t slots, std::vector<uint32_t>& ring) {
    PENSTOCK_CHECK(std::has_single_bit(slots) && !backends.empty());
    const uint64_t sum =
        std::accumulate(backends.begin(), backends.end(), uint64_t{0},
                        [](uint64_t so_far, const Backend& backend) { return so_far + backend.weight; });
    const uint64_t weights = sum == 0 ? backends.size() : sum;
    // At most 2^63: the smallest sum, 1, would reach that with the largest table.
    const auto shift = static_cast<unsigned>(64 - std::countr_zero(slots));
    const auto horizon = static_cast<uint64_t>(std::min<unsigned __int128>(
        static_cast<unsigned __int128>(kVisitsPerSlot) * slots * kUnitsPerVisit / weights,
        uint64_t{1} << 63));

    constexpr uint64_t kNever = ~uint64_t{0};
    constexpr uint32_t kFree = ~0u;
    const size_t base = ring.size();
    ring.resize(base + slots, kFree);
    const std::span<uint32_t> owner = std::span(ring).subspan(base);
    std::vector<uint64_t> first_visit(slots, kNever);
    for (uint32_t i = 0; i < backends.size(); ++i) {
        const uint64_t weight = sum == 0 ? 1 : backends[i].weight;
        if (weight == 0) {
            continue;
        }
        Visits visits(backends[i]);
        const uint64_t period = kUnitsPerVisit / weight;
        for (uint64_t begin = 0; begin < horizon; begin += period) {
            const uint64_t random = visits.next();
            // The high bits select the slot, the low ones the time.
            const uint64_t time = begin + ((period * (random & 0xffff)) >> 16);
            const uint64_t slot = random >> shift;
            // At equal times the lower position wins; positions are the same on all gateways.
            if (time < first_visit[slot]) {
                first_visit[slot] = time;
                owner[slot] = i;
            }
        }
    }
    // Backwards and twice around, so that the last slots take the owners of the first ones.
    uint32_t next = kFree;
    for (int round = 0; round < 2; ++round) {
        for (uint32_t slot = slots; slot-- > 0;) {
            if (owner[slot] == kFree) {
                owner[slot] = next;
            }
            next = owner[slot];
        }
    }
}

}  // namespace penstock::lb
