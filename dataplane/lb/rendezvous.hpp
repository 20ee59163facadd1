// Weighted rendezvous hashing (Thaler and Ravishankar 1998) worked out into a table: each slot belongs to the backend that wins the slot
// by a pseudo-random draw of its own, so a backend that goes gives up its slots and no other slot changes hands.
//
// Drawing for each pair of slot and backend would take slots x backends steps. Instead every backend visits random slots, one visit in each
// 1/weight of time, and a slot belongs to its first visitor. After four visits a slot on average (e^-4 of the slots have had none), the
// rest take the owner of the next slot that has one. Time has no scale but the backend's own weight, so neither the number of backends nor
// the weights of others enter into who comes first.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "dataplane/lb/backend.hpp"

namespace penstock::lb {

// Appends `slots` (a power of two) indices into `backends` to `ring`. Deterministic in addresses, ports and weights alone; backends of
// weight 0 win nothing unless all have 0. At least two of them win something. Control thread: about 4 x slots steps with a cache miss each,
// and 12 bytes of memory a slot meanwhile.
void append_rendezvous(std::span<const Backend> backends, uint32_t slots, std::vector<uint32_t>& ring);

}  // namespace penstock::lb
