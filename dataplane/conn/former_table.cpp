// SPDX-License-Identifier: Apache-2.0
#include "dataplane/conn/former_table.hpp"

#include <algorithm>
#include <string>

#include "dataplane/conn/table.hpp"
#include "dataplane/conn/table_layout.hpp"

namespace penstock::conn {
namespace {

using detail::Header;

bool is_known(KeyFamilies families) noexcept {
    return families == KeyFamilies::V4 || families == KeyFamilies::V6 || families == KeyFamilies::Mixed;
}

// Raised to a whole pair: the second unit of the last one belongs to it.
uint32_t units_to_read(uint32_t high_water, uint32_t units) noexcept {
    return std::min(high_water, units - 1) / 2 * 2 + 2;
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
    table.units_ = units_to_read(header.high_water, units);
    return table;
}

Result<FormerTable> FormerTable::open(std::span<const std::byte> memory,
                                      const TableDescription& description) {
    if (const std::string obstacle = obstacle_of(description, memory.size()); !obstacle.empty()) {
        return fail(Errc::InvalidArgument, "connection table of another layout: " + obstacle);
    }
    if (load<uint64_t>(memory.data() + offsetof(Header, magic)) != Header::kMagic ||
        load<uint32_t>(memory.data() + offsetof(Header, version)) != description.version) {
        return fail(Errc::Corrupt, "connection table: the memory holds no table of layout version " +
                                       std::to_string(description.version));
    }
    FormerTable table;
    table.units_ =
        units_to_read(load<uint32_t>(memory.data() + description.high_water_at), description.units);
    table.first_ = memory.data() + description.units_at;
    table.unit_bytes_ = description.unit_bytes;
    table.addresses_at_ = description.addresses_at;
    table.fields_ = FieldReader(description);
    return table;
}

FormerTable::Unit FormerTable::read(uint32_t unit, Connection& out) const noexcept {
    if (first_ != nullptr) {
        return read_described(unit, out);
    }
    const Entry& entry = entries_[unit];
    if ((entry.generation & 1) == 0 || ((unit & 1) != 0 && entries_[unit - 1].is_v6())) {
        return Unit::Empty;
    }
    // A copy, so that what was examined is what is used.
    struct {
        Entry entry;
        detail::V6Addresses addresses;
    } copy{entry, {}};
    if (!is_known(copy.entry.families) || (copy.entry.is_v6() && (unit & 1) != 0) ||
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

packet::FlowKey FormerTable::described_key(const std::byte* unit, Direction direction,
                                           bool has_two_units) const noexcept {
    const bool is_forward = direction == Direction::Forward;
    packet::FlowKey key;
    if (has_two_units) {
        const std::byte* second = unit + unit_bytes_;
        const size_t source = 2 * static_cast<size_t>(direction);
        key.source = IpAddr::v6(load<std::array<uint8_t, 16>>(second + addresses_at_[source]));
        key.destination = IpAddr::v6(load<std::array<uint8_t, 16>>(second + addresses_at_[source + 1]));
    } else {
        const uint64_t addresses =
            fields_.read(unit, is_forward ? EntryField::ForwardV4Addresses : EntryField::ReverseV4Addresses);
        key.source = IpAddr::v4(Be32::from_raw(static_cast<uint32_t>(addresses)));
        key.destination = IpAddr::v4(Be32::from_raw(static_cast<uint32_t>(addresses >> 32)));
    }
    const uint64_t ports =
        fields_.read(unit, is_forward ? EntryField::ForwardPorts : EntryField::ReversePorts);
    key.source_port = static_cast<L4Port>(ports);
    key.destination_port = static_cast<L4Port>(ports >> 16);
    key.protocol = static_cast<Protocol>(fields_.read(unit, EntryField::Protocol));
    return key;
}

FormerTable::Unit FormerTable::read_described(uint32_t unit, Connection& out) const noexcept {
    const std::byte* at = first_ + size_t{unit} * unit_bytes_;
    const auto word = [&](EntryField field) { return static_cast<uint32_t>(fields_.read(at, field)); };
    const auto families_at = [&](const std::byte* one) {
        return static_cast<KeyFamilies>(fields_.read(one, EntryField::Families));
    };
    if ((word(EntryField::Generation) & 1) == 0 ||
        ((unit & 1) != 0 && families_at(at - unit_bytes_) >= KeyFamilies::V6)) {
        return Unit::Empty;
    }
    const KeyFamilies families = families_at(at);
    const auto protocol = static_cast<Protocol>(word(EntryField::Protocol));
    const auto state = static_cast<uint8_t>(word(EntryField::State));
    if (!is_known(families) || !is_state(protocol, state)) {
        return Unit::Unknown;
    }
    const bool has_two_units = families >= KeyFamilies::V6;
    if (has_two_units && (unit & 1) != 0) {
        return Unit::Damaged;
    }
    out = {.forward = described_key(at, Direction::Forward, has_two_units),
           .reverse = described_key(at, Direction::Reverse, has_two_units),
           .last_seen = {word(EntryField::LastSeen)},
           .opened_at = {word(EntryField::OpenedAt)},
           .service = {word(EntryField::Service)},
           .backend = {word(EntryField::Backend)},
           .snat_pool = word(EntryField::SnatPool),
           .state = state,
           .source_kept = word(EntryField::SourceKept) != 0,
           .is_pinned = word(EntryField::IsPinned) != 0,
           .snat_index = static_cast<uint8_t>(word(EntryField::SnatIndex)),
           .tags = {word(EntryField::ForwardTag), word(EntryField::ReverseTag)}};
    return has_families(out.forward, out.reverse, families) ? Unit::Live : Unit::Damaged;
}

}  // namespace penstock::conn
