// SPDX-License-Identifier: Apache-2.0
// Maps a backend to its position in a set, in two or three reads. Session affinity uses it for each new flow
// of a known client. Built with the set on the control thread; a Service without affinity has none.
//
// Open addressing, at most half full, linear probing from id x an odd constant: ids are dense, and the
// multiplication spreads consecutive ids.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "dataplane/lb/backend.hpp"

namespace penstock::lb {

template <typename IdType>
class Positions {
 public:
    static constexpr uint32_t kNone = ~0u;

    Positions() = default;  // for an empty set
    // If several backends have one id, the first is used.
    static Positions build(std::span<const Backend> backends);

    [[nodiscard]] bool empty() const noexcept { return slots_.empty(); }
    // The position in the argument of build(), or kNone. Any worker. Terminates, because half of the slots
    // are free.
    [[nodiscard]] uint32_t find(IdType id) const noexcept {
        if (slots_.empty()) {
            return kNone;
        }
        for (size_t at = first(id);; at = (at + 1) & (slots_.size() - 1)) {
            if (slots_[at].position == kNone || slots_[at].id == id) {
                return slots_[at].position;
            }
        }
    }

 private:
    struct Slot {
        IdType id;
        uint32_t position = kNone;
    };
    [[nodiscard]] size_t first(IdType id) const noexcept { return (id.value * 0x9e3779b1U) >> shift_; }

    std::vector<Slot> slots_;  // a power of two, at least 2
    unsigned shift_ = 31;      // 32 - log2 of their number
};

using BackendPositions = Positions<BackendId>;    // by Backend::id
using EndpointPositions = Positions<EndpointId>;  // by Backend::endpoint

}  // namespace penstock::lb
