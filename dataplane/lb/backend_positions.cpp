// SPDX-License-Identifier: Apache-2.0
#include "dataplane/lb/backend_positions.hpp"

#include <bit>
#include <type_traits>

namespace penstock::lb {
namespace {

template <typename IdType>
IdType id_of(const Backend& backend) noexcept {
    if constexpr (std::is_same_v<IdType, BackendId>) {
        return backend.id;
    } else {
        return backend.endpoint;
    }
}

}  // namespace

template <typename IdType>
Positions<IdType> Positions<IdType>::build(std::span<const Backend> backends) {
    Positions made;
    if (backends.empty()) {
        return made;
    }
    made.slots_.resize(std::bit_ceil(2 * backends.size()));
    made.shift_ = 32 - static_cast<unsigned>(std::countr_zero(made.slots_.size()));
    for (uint32_t position = 0; position < backends.size(); ++position) {
        const IdType id = id_of<IdType>(backends[position]);
        size_t at = made.first(id);
        while (made.slots_[at].position != kNone && made.slots_[at].id != id) {
            at = (at + 1) & (made.slots_.size() - 1);
        }
        if (made.slots_[at].position == kNone) {
            made.slots_[at] = {id, position};
        }
    }
    return made;
}

template class Positions<BackendId>;
template class Positions<EndpointId>;

}  // namespace penstock::lb
