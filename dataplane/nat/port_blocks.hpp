// SNAT ports are handled in blocks of 64: one word of bits in a pool and in its map, and, where blocks belong to workers, with a power of
// two of them one masked rte_flow rule a worker (bits 6.. of the port name the owner).
#pragma once

#include <cstdint>

namespace penstock::nat {

inline constexpr uint32_t kPortsPerBlock = 64;
inline constexpr uint32_t kPortBlocks = 65'536 / kPortsPerBlock;

}  // namespace penstock::nat
