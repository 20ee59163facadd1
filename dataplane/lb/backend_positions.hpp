// Where in a set a backend id is, in two or three reads: what session affinity asks for each new flow of a known client. Built with the set
// on the control thread; a Service without affinity has none.
//
// Open addressing, at most half full, linear probing from id x an odd constant: ids are dense, so neighbours in number are strangers here.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "dataplane/lb/backend.hpp"

namespace penstock::lb {

class BackendPositions {
 public:
    static constexpr uint32_t kNone = ~0u;

    BackendPositions() = default;  // of an empty set
    // The ids differ from one another.
    static BackendPositions build(std::span<const Backend> backends);

    [[nodiscard]] bool empty() const noexcept { return slots_.empty(); }
    // Its position in what build() was given, or kNone. Any worker; ends, because half of the slots are free.
    [[nodiscard]] uint32_t find(BackendId id) const noexcept {
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
        BackendId id;
        uint32_t position = kNone;
    };
    [[nodiscard]] size_t first(BackendId id) const noexcept { return (id.value * 0x9e3779b1U) >> shift_; }

    std::vector<Slot> slots_;  // a power of two, at least 2
    unsigned shift_ = 31;      // 32 - log2 of their number
};

}  // namespace penstock::lb
