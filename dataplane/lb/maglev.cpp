// SPDX-License-Identifier: Apache-2.0
#include "dataplane/lb/maglev.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "dataplane/base/check.hpp"
#include "dataplane/base/hash.hpp"
#include "dataplane/base/limits.hpp"
#include "dataplane/lb/rendezvous.hpp"

namespace penstock::lb {
namespace {

enum class Method : uint8_t { Turns, Rendezvous };
struct SizeClass {
    Method method;
    // Turns: a prime, so that every step from 1 to slots-1 visits all slots. Rendezvous: a power of two.
    uint32_t slots;
    // Up to this number of backends only this ring is used. From there to kBlend times this number, its share
    // moves gradually to the next class.
    uint32_t alone_until;
};
// Measured: a removal moves (1 + c n^2 / slots) / n of the clients with turns, c being about 3, and only its
// own share with rendezvous. The growing share of the next ring adds 1 / (n ln kBlend) = 0.36 / n. While a
// ring of turns is blended out, its part of c n^2 / slots is largest near 10 x alone_until: c x 17
// alone_until^2 / slots. With slots >= 160 x alone_until^2 that is 0.32, and the total stays below 1.8 / n.
// Shares with rendezvous deviate by sqrt(n / 2 slots) from their mean (half the variance of independent
// draws, because every backend visits equally often). With 64 slots per backend, the minimum, that is 9 %.
constexpr uint32_t kBlend = 16;
constexpr std::array<SizeClass, 4> kClasses{{{Method::Turns, 16'381, 10},
                                             {Method::Rendezvous, 1u << 18, 640},
                                             {Method::Rendezvous, 1u << 20, 16'384},
                                             {Method::Rendezvous, 1u << 23, ~0u}}};
static_assert(kClasses[0].slots >= 160 * kClasses[0].alone_until * kClasses[0].alone_until);
static_assert(kClasses[0].alone_until * kBlend <= kClasses[1].alone_until &&
              kClasses[1].alone_until * kBlend <= kClasses[2].alone_until);
// Eight slots per backend: one backend in a million would get none of them.
static_assert(kClasses.back().slots >= 8 * limits::kBackendsPerServiceMax,
              "backends without a slot would get no flows");

// Public and fixed: see MaglevRing::build. Two keys give the paper's two independent hashes.
constexpr HashKey kOffsetKey{0x6d61676c65760001ULL, 0x6f66667365740001ULL};
constexpr HashKey kSkipKey{0x6d61676c65760002ULL, 0x736b697000000002ULL};

uint64_t backend_hash(const Backend& backend, const HashKey& key) {
    return siphash13<3>(key, {load<uint64_t>(backend.address.bytes().data()),
                              load<uint64_t>(backend.address.bytes().data() + 8), uint64_t{backend.port}});
}

// One backend's position in its own order of slots.
struct Claimant {
    uint32_t backend;
    uint32_t next;  // the slot to try next
    uint32_t skip;  // steps between tries
    uint64_t weight;
    uint64_t owed = 0;  // the backend skips a round while round x weight is below this
};

// Appends a ring of `slots`, assigned in rounds (the paper's pseudocode 1). Weights: the heaviest backend
// takes a slot in each round, the others in proportion, and all take one in the first round.
void append_by_turns(std::span<const Backend> backends, uint32_t slots, std::vector<uint32_t>& ring) {
    uint64_t weight_max = 0;
    for (const Backend& backend : backends) {
        weight_max = std::max<uint64_t>(weight_max, backend.weight);
    }
    std::vector<Claimant> claimants;
    claimants.reserve(backends.size());
    for (uint32_t i = 0; i < backends.size(); ++i) {
        const uint64_t weight = weight_max == 0 ? 1 : backends[i].weight;
        if (weight != 0) {
            claimants.push_back(
                {.backend = i,
                 .next = static_cast<uint32_t>(backend_hash(backends[i], kOffsetKey) % slots),
                 .skip = static_cast<uint32_t>(backend_hash(backends[i], kSkipKey) % (slots - 1)) + 1,
                 .weight = weight});
        }
    }
    weight_max = std::max<uint64_t>(weight_max, 1);

    constexpr uint32_t kFree = ~0u;
    const size_t base = ring.size();
    ring.resize(base + slots, kFree);
    uint32_t* const slot = ring.data() + base;
    uint32_t taken = 0;
    for (uint64_t round = 1; taken < slots; ++round) {
        for (Claimant& claimant : claimants) {
            if (round * claimant.weight < claimant.owed) {
                continue;
            }
            claimant.owed += weight_max;
            while (slot[claimant.next] != kFree) {
                claimant.next += claimant.skip;
                claimant.next -= claimant.next >= slots ? slots : 0;
            }
            slot[claimant.next] = claimant.backend;
            if (++taken == slots) {
                break;
            }
        }
    }
}

void append_ring(std::span<const Backend> backends, const SizeClass& size, std::vector<uint32_t>& ring) {
    switch (size.method) {
        case Method::Turns:
            return append_by_turns(backends, size.slots, ring);
        case Method::Rendezvous:
            return append_rendezvous(backends, size.slots, ring);
    }
}

}  // namespace

MaglevRing MaglevRing::build(std::span<const Backend> backends) {
    MaglevRing made;
    if (backends.empty()) {
        return made;
    }
    PENSTOCK_CHECK(backends.size() <= limits::kBackendsPerServiceMax);
    auto count = static_cast<uint32_t>(
        std::ranges::count_if(backends, [](const Backend& b) { return b.weight != 0; }));
    count = count == 0 ? static_cast<uint32_t>(backends.size()) : count;
    if (backends.size() == 1) {
        made.ring_ = {0};
        made.first_size_ = 1;
        return made;
    }
    size_t cls = 0;
    while (cls + 1 < kClasses.size() && count >= kClasses[cls].alone_until * kBlend) {
        ++cls;
    }
    append_ring(backends, kClasses[cls], made.ring_);
    made.first_size_ = made.size();
    if (count > kClasses[cls].alone_until) {
        // Logarithmic, so that each additional backend moves the same share of 1/n.
        const double share = std::log2(double(count) / kClasses[cls].alone_until) / std::log2(double(kBlend));
        made.second_share_ = static_cast<uint32_t>(std::lround(share * kShareOne));
        append_ring(backends, kClasses[cls + 1], made.ring_);
    }
    return made;
}

}  // namespace penstock::lb
