// SPDX-License-Identifier: Apache-2.0
#include "dataplane/conn/former_table.hpp"

#include <algorithm>
#include <string>

#include "dataplane/conn/table.hpp"
#include "dataplane/conn/table_layout.hpp"

namespace penstock::conn {
namespace {

using detail::Header;

bool is_state(Protocol protocol, uint8_t state) noexcept {
    switch (protocol) {
        case Protocol::Tcp:
            return state < kTcpStates;
        case Protocol::Udp:
            return state <= static_cast<uint8_t>(DatagramState::TwoWay);
        case Protocol::Sctp:
            return state < kSctpStates;
    }
    return false;
}

bool has_families(const packet::FlowKey& forward, const packet::FlowKey& reverse,
                  KeyFamilies families) noexcept {
    const bool is_v4 = forward.source.is_v4();
    const bool is_reverse_v4 = reverse.source.is_v4();
    return is_v4 == forward.destination.is_v4() && is_reverse_v4 == reverse.destination.is_v4() &&
           (families == KeyFamilies::Mixed
                ? is_v4 != is_reverse_v4
                : is_v4 == is_reverse_v4 && is_v4 == (families == KeyFamilies::V4));
}

}  // namespace

Result<FormerTable> FormerTable::open(std::span<const std::byte> memory) {
    if (memory.size() < sizeof(Header) || reinterpret_cast<uintptr_t>(memory.data()) % kCacheLine != 0) {
        return fail(Errc::Corrupt, "connection table: no header at the start of a cache line");
    }
    const auto header = load<Header>(memory.data());
    if (header.magic != Header::kMagic || header.version != Header::kVersion) {
        return fail(Errc::Corrupt, "connection table: the memory holds no table of layout version " +
                                       std::to_string(Header::kVersion));
    }
    const size_t needed = Table::memory_needed(header.capacity);
    if (needed == 0 || memory.size() < needed) {
        return fail(Errc::Corrupt, "connection table: a table of " + std::to_string(header.capacity) +
                                       " connections does not fit the memory of " +
                                       std::to_string(memory.size()) + " bytes");
    }
    const auto units = static_cast<uint32_t>(detail::units_for(header.capacity));
    FormerTable table;
    table.entries_ = reinterpret_cast<const Entry*>(memory.data() + needed) - units;
    // Raised to a whole pair: the second unit of the last one belongs to it.
    table.units_ = std::min(header.high_water, units - 1) / 2 * 2 + 2;
    return table;
}

FormerTable::Unit FormerTable::read(uint32_t unit, Connection& out) const noexcept {
    const Entry& entry = entries_[unit];
    if ((entry.generation & 1) == 0 || ((unit & 1) != 0 && entries_[unit - 1].is_v6())) {
        return Unit::Empty;
    }
    // A copy, so that what was examined is what is used.
    struct {
        Entry entry;
        detail::V6Addresses addresses;
    } copy{entry, {}};
    const bool is_known = copy.entry.families == KeyFamilies::V4 || copy.entry.families == KeyFamilies::V6 ||
                          copy.entry.families == KeyFamilies::Mixed;
    if (!is_known || (copy.entry.is_v6() && (unit & 1) != 0) ||
        !is_state(copy.entry.protocol, copy.entry.state)) {
        return Unit::Damaged;
    }
    if (copy.entry.is_v6()) {
        copy.addresses = load<detail::V6Addresses>(&entries_[unit + 1]);
    }
    out = {.forward = copy.entry.key(Direction::Forward),
           .reverse = copy.entry.key(Direction::Reverse),
           .last_seen = copy.entry.last_seen,
           .opened_at = copy.entry.opened_at,
           .service = copy.entry.service,
           .backend = copy.entry.backend,
           .snat_pool = copy.entry.snat_pool,
           .l4_delta = copy.entry.l4_delta,
           .ip_delta = copy.entry.ip_delta,
           .state = copy.entry.state,
           .source_kept = copy.entry.source_kept != 0,
           .is_pinned = copy.entry.is_pinned != 0,
           .snat_index = copy.entry.snat_index,
           .tags = copy.entry.tags};
    return has_families(out.forward, out.reverse, copy.entry.families) ? Unit::Live : Unit::Damaged;
}

}  // namespace penstock::conn
