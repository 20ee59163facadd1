// SPDX-License-Identifier: Apache-2.0
// Weighted rendezvous hashing (Thaler and Ravishankar 1998), precomputed as a table. Each slot belongs to the
// backend that wins a pseudo-random draw for this slot. So a removed backend releases its slots, and no other
// slot changes.
//
// A draw for each pair of slot and backend would take slots x backends steps. Instead every backend visits
// random slots, one visit per 1/weight of time, and a slot belongs to its first visitor. After an average of
// four visits per slot, a fraction e^-4 of the slots has had none; each of these takes the owner of the next
// slot that has one. The time of a visit depends only on the backend's own weight. So neither the number of
// backends nor the weights of others affect which visit is first.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "dataplane/lb/backend.hpp"

namespace penstock::lb {

// Appends `slots` (a power of two) indices into `backends` to `ring`. Depends only on addresses, ports and
// weights. Backends of weight 0 get no slots unless all weights are 0. At least two of the backends get
// slots. Control thread: about 4 x slots steps with a cache miss each, and 12 bytes of temporary memory per
// slot.
void append_rendezvous(std::span<const Backend> backends, uint32_t slots, std::vector<uint32_t>& ring);

}  // namespace penstock::lb
