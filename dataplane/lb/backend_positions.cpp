#include "dataplane/lb/backend_positions.hpp"

#include <bit>

namespace penstock::lb {

BackendPositions BackendPositions::build(std::span<const Backend> backends) {
    BackendPositions made;
    if (backends.empty()) {
        return made;
    }
    made.slots_.resize(std::bit_ceil(2 * backends.size()));
    made.shift_ = 32 - static_cast<unsigned>(std::countr_zero(made.slots_.size()));
    for (uint32_t position = 0; position < backends.size(); ++position) {
        size_t at = made.first(backends[position].id);
        while (made.slots_[at].position != kNone) {
            at = (at + 1) & (made.slots_.size() - 1);
        }
        made.slots_[at] = {backends[position].id, position};
    }
    return made;
}

}  // namespace penstock::lb
