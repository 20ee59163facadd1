// SPDX-License-Identifier: Apache-2.0
#include "dataplane/nat/port_rules.hpp"

namespace penstock::nat {
namespace {

// The bits of `range` within `block`.
uint64_t bits_of(PortRange range, uint32_t block) noexcept {
    const uint32_t start = block * kPortsPerBlock;
    if (range.first > range.last || range.last < start || range.first >= start + kPortsPerBlock) {
        return 0;
    }
    const uint32_t from = range.first > start ? range.first - start : 0;
    const uint32_t to = range.last < start + kPortsPerBlock - 1 ? range.last - start : kPortsPerBlock - 1;
    return (~0ULL << from) & (~0ULL >> (kPortsPerBlock - 1 - to));
}

}  // namespace

uint64_t PortRules::usable_in_part(uint32_t block) const noexcept {
    const uint64_t port_zero = block == 0 ? 1 : 0;
    return bits_of(range, block) & ~port_zero & ~bits_of(excluded, block);
}

}  // namespace penstock::nat
