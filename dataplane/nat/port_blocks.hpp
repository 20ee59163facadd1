// SPDX-License-Identifier: Apache-2.0
// SNAT ports are managed in blocks of 64: one word of bits in a pool and in its map. If blocks belong to
// workers, and the number of workers is a power of two, one masked rte_flow rule per worker suffices. Bits 6
// and up of the port then identify the owner.
#pragma once

#include <cstdint>

namespace penstock::nat {

inline constexpr uint32_t kPortsPerBlock = 64;
inline constexpr uint32_t kPortBlocks = 65'536 / kPortsPerBlock;

}  // namespace penstock::nat
