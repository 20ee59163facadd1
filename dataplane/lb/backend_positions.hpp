// Position of a backend in a set, in two or three reads. Session affinity needs it for each new flow of a known client. Built with the set
// on the control thread; a Service without affinity has none.
//
// Open addressing, at most half full, linear probing from id x an odd constant: ids are dense, so neighbours in number are strangers here.
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

    Positions() = default;  // of an empty set
    // Of several backends with one id, the first counts.
    static Positions build(std::span<const Backend> backends);

    [[nodiscard]] bool empty() const noexcept { return slots_.empty(); }
    // Its position in what build() was given, or kNone. Any worker; ends, because half of the slots are free.
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
