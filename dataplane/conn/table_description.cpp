// SPDX-License-Identifier: Apache-2.0
#include "dataplane/conn/table_description.hpp"

#include <algorithm>
#include <string_view>

#include "dataplane/base/bytes.hpp"
#include "dataplane/conn/table.hpp"
#include "dataplane/conn/table_layout.hpp"

namespace penstock::conn {
namespace {

constexpr size_t kWindowBytes = sizeof(uint64_t);
// Limits of what is accepted, far beyond any reasonable layout. They keep sums of untrusted numbers small.
constexpr uint16_t kUnitBytesMin = 32, kUnitBytesMax = 1024;
constexpr uint64_t kUnitsAtMax = uint64_t{1} << 48;
// Magic and version are at the start of the tables of every layout.
constexpr uint64_t kHeaderStartBytes = offsetof(detail::Header, version) + sizeof(detail::Header::version);
static_assert(offsetof(detail::Header, magic) == 0 && kHeaderStartBytes == 12);

constexpr std::array<std::string_view, kEntryFields> kFieldNames{
#define PENSTOCK_X(name, bits, need) #name,
    PENSTOCK_ENTRY_FIELDS(PENSTOCK_X)
#undef PENSTOCK_X
};

// The last window of a unit ends with it.
constexpr size_t window_at(const FieldPlace& place, uint16_t unit_bytes) noexcept {
    return std::min<size_t>(place.at / 8, unit_bytes - kWindowBytes);
}

std::string obstacle_of_fields(const TableDescription& description) {
    for (size_t i = 0; i < kEntryFields; ++i) {
        const FieldPlace& place = description.fields[i];
        const std::string name = "field " + std::string(kFieldNames[i]);
        if (place.bits == 0) {
            if (kFieldNeeds[i] == FieldNeed::Always) {
                return name + " is missing";
            }
            continue;
        }
        if (place.bits > kFieldBits[i]) {
            return name + " has " + std::to_string(place.bits) + " bits; this build has " +
                   std::to_string(kFieldBits[i]);
        }
        if (uint32_t{place.at} + place.bits > uint32_t{description.unit_bytes} * 8 ||
            place.at - window_at(place, description.unit_bytes) * 8 + place.bits > kWindowBytes * 8) {
            return name + " does not lie in eight bytes of a unit";
        }
    }
    return {};
}

}  // namespace

TableDescription describe_tables(uint32_t capacity) noexcept {
    TableDescription out;
    const uint64_t units = detail::units_for(capacity);
    out.version = detail::Header::kVersion;
    out.units_at = sizeof(detail::Header) + detail::buckets_for(capacity) * sizeof(detail::Bucket);
    out.units = static_cast<uint32_t>(units);
    out.unit_bytes = sizeof(Entry);
    out.high_water_at = offsetof(detail::Header, high_water);
    constexpr size_t kAddress = sizeof(detail::V6Addresses::OneWay::source);
    for (size_t i = 0; i < kUnitAddresses; ++i) {
        out.addresses_at[i] =
            static_cast<uint16_t>(offsetof(detail::V6Addresses, by_direction) + i * kAddress);
    }
    const auto set = [&](EntryField field, size_t byte, size_t bit = 0) {
        const auto i = static_cast<size_t>(field);
        out.fields[i] = {static_cast<uint16_t>(byte * 8 + bit), kFieldBits[i]};
    };
    set(EntryField::Generation, offsetof(Entry, generation));
    set(EntryField::Protocol, offsetof(Entry, protocol));
    set(EntryField::Families, offsetof(Entry, families));
    set(EntryField::State, offsetof(Entry, state));
    // Bit-fields have no offset: they are in the byte after the state, the first one in its lowest bit.
    set(EntryField::SourceKept, offsetof(Entry, state) + 1, 0);
    set(EntryField::IsPinned, offsetof(Entry, state) + 1, 1);
    set(EntryField::SnatIndex, offsetof(Entry, state) + 1, 2);
    set(EntryField::ForwardV4Addresses, offsetof(Entry, v4_addresses));
    set(EntryField::ReverseV4Addresses, offsetof(Entry, v4_addresses) + sizeof(uint64_t));
    set(EntryField::ForwardPorts, offsetof(Entry, port_pairs));
    set(EntryField::ReversePorts, offsetof(Entry, port_pairs) + sizeof(uint32_t));
    set(EntryField::LastSeen, offsetof(Entry, last_seen));
    set(EntryField::OpenedAt, offsetof(Entry, opened_at));
    set(EntryField::Service, offsetof(Entry, service));
    set(EntryField::Backend, offsetof(Entry, backend));
    set(EntryField::SnatPool, offsetof(Entry, snat_pool));
    set(EntryField::ForwardTag, offsetof(Entry, tags));
    set(EntryField::ReverseTag, offsetof(Entry, tags) + sizeof(uint32_t));
    return out;
}

std::string obstacle_of(const TableDescription& description, uint64_t table_bytes) {
    if (description.meaning != TableDescription::kMeaning) {
        return "meaning " + std::to_string(description.meaning) +
               " of its fields is not known; this build has " + std::to_string(TableDescription::kMeaning);
    }
    if (description.unit_bytes < kUnitBytesMin || description.unit_bytes > kUnitBytesMax) {
        return "a unit of " + std::to_string(description.unit_bytes) + " bytes is out of range";
    }
    if (description.units < 2 || description.units % 2 != 0 || description.units > Table::kCapacityMax) {
        return std::to_string(description.units) + " units are out of range";
    }
    if (description.units_at < kHeaderStartBytes || description.units_at > kUnitsAtMax ||
        description.units_at + uint64_t{description.units} * description.unit_bytes > table_bytes) {
        return std::to_string(description.units) + " units from byte " +
               std::to_string(description.units_at) + " on do not lie in a table of " +
               std::to_string(table_bytes) + " bytes";
    }
    if (description.high_water_at < kHeaderStartBytes ||
        description.high_water_at + sizeof(uint32_t) > description.units_at) {
        return "the number of used units is not in the header of a table";
    }
    for (const uint16_t at : description.addresses_at) {
        if (at + 16U > description.unit_bytes) {
            return "an address is not in a unit";
        }
    }
    return obstacle_of_fields(description);
}

FieldReader::FieldReader(const TableDescription& description) noexcept {
    for (size_t i = 0; i < kEntryFields; ++i) {
        const FieldPlace& place = description.fields[i];
        if (place.bits == 0) {
            continue;  // mask 0
        }
        const size_t at = window_at(place, description.unit_bytes);
        windows_[i] = {.at = static_cast<uint16_t>(at),
                       .shift = static_cast<uint8_t>(place.at - at * 8),
                       .mask = ~uint64_t{0} >> (64 - place.bits)};
    }
}

uint64_t FieldReader::read(const std::byte* unit, EntryField field) const noexcept {
    const Window& window = windows_[static_cast<size_t>(field)];
    return load<uint64_t>(unit + window.at) >> window.shift & window.mask;
}

}  // namespace penstock::conn
