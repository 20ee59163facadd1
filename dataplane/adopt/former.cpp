// SPDX-License-Identifier: Apache-2.0
#include "dataplane/adopt/former.hpp"

namespace penstock::adopt {

std::string_view to_string(NotAdopted reason) noexcept {
    static constexpr std::array<std::string_view, kNotAdopted> kNames{
#define PENSTOCK_X(name, text, meaning) text,
        PENSTOCK_NOT_ADOPTED(PENSTOCK_X)
#undef PENSTOCK_X
    };
    return kNames[static_cast<size_t>(reason)];
}

}  // namespace penstock::adopt
