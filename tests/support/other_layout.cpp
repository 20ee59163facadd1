// SPDX-License-Identifier: Apache-2.0
#include "tests/support/other_layout.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "dataplane/base/bytes.hpp"
#include "dataplane/base/check.hpp"
#include "dataplane/conn/entry.hpp"
#include "dataplane/conn/table_layout.hpp"

namespace penstock::test {
namespace {

using conn::EntryField;
using conn::FieldNeed;
using conn::FieldPlace;
using conn::TableDescription;

constexpr uint32_t kMagicBytes = 12;  // magic and version, in every layout

template <typename Array>
void shuffle(Array& items, Prng& random) {
    for (size_t left = items.size(); left > 1; --left) {
        std::swap(items[left - 1], items[random.below(left)]);
    }
}

// Bit by bit, unlike the code under test.
uint64_t bits_at(const std::byte* unit, const FieldPlace& place) {
    uint64_t value = 0;
    for (uint32_t i = 0; i < place.bits; ++i) {
        const uint32_t bit = uint32_t{place.at} + i;
        value |= (std::to_integer<uint64_t>(unit[bit / 8]) >> (bit % 8) & 1) << i;
    }
    return value;
}

void set_bits(std::byte* unit, const FieldPlace& place, uint64_t value) {
    for (uint32_t i = 0; i < place.bits; ++i) {
        const uint32_t bit = uint32_t{place.at} + i;
        const std::byte mask = std::byte{1} << (bit % 8);
        unit[bit / 8] = (value >> i & 1) != 0 ? unit[bit / 8] | mask : unit[bit / 8] & ~mask;
    }
}

bool holds_addresses(const std::byte* first, const TableDescription& layout) {
    return bits_at(first, layout.place(EntryField::Families)) >= static_cast<uint64_t>(conn::KeyFamilies::V6);
}

}  // namespace

TableDescription random_layout(Prng& random, const TableDescription& own) {
    TableDescription out;
    out.version = static_cast<uint32_t>(random.between(2'000, 3'000));
    out.units = own.units;
    std::array<size_t, conn::kEntryFields> order;
    for (size_t i = 0; i < order.size(); ++i) {
        order[i] = i;
    }
    shuffle(order, random);
    uint32_t bit = 0;
    for (const size_t field : order) {
        if (conn::kFieldNeeds[field] == FieldNeed::Optional && random.one_in(3)) {
            continue;
        }
        bit += static_cast<uint32_t>(random.one_in(2) ? 0 : random.below(20));
        if (bit % 8 + conn::kFieldBits[field] > 64) {
            bit = (bit + 7) / 8 * 8;
        }
        out.fields[field] = {static_cast<uint16_t>(bit), conn::kFieldBits[field]};
        bit += conn::kFieldBits[field];
    }
    constexpr uint32_t kAddressesBytes = conn::kUnitAddresses * 16;
    const uint32_t least = std::max((bit + 7) / 8, kAddressesBytes);
    out.unit_bytes = static_cast<uint16_t>(least + random.below(40));
    std::array<uint16_t, conn::kUnitAddresses> positions{0, 16, 32, 48};
    shuffle(positions, random);
    const auto shift = static_cast<uint16_t>(random.between(0, out.unit_bytes - kAddressesBytes));
    for (size_t i = 0; i < positions.size(); ++i) {
        out.addresses_at[i] = static_cast<uint16_t>(positions[i] + shift);
    }
    out.units_at = random.between(16, 5'000);
    out.high_water_at = static_cast<uint16_t>(
        random.between(kMagicBytes, std::min<uint64_t>(out.units_at - sizeof(uint32_t), 0xffff)));
    PENSTOCK_CHECK(conn::obstacle_of(out, bytes_of_table(out)).empty());
    return out;
}

size_t bytes_of_table(const TableDescription& description) {
    return description.units_at + size_t{description.units} * description.unit_bytes;
}

AlignedMemory in_layout(std::span<const std::byte> table, const TableDescription& from,
                        const TableDescription& to, Prng& noise) {
    PENSTOCK_CHECK(from.units == to.units && bytes_of_table(from) <= table.size());
    AlignedMemory memory(bytes_of_table(to));
    for (size_t at = 0; at + 8 <= memory.span().size(); at += 8) {
        store(memory.span().data() + at, noise.next());
    }
    store(memory.span().data() + offsetof(conn::detail::Header, magic), conn::detail::Header::kMagic);
    store(memory.span().data() + offsetof(conn::detail::Header, version), to.version);
    store(memory.span().data() + to.high_water_at, load<uint32_t>(table.data() + from.high_water_at));
    for (uint32_t unit = 0; unit < from.units; ++unit) {
        const std::byte* source = table.data() + from.units_at + size_t{unit} * from.unit_bytes;
        std::byte* target = memory.span().data() + to.units_at + size_t{unit} * to.unit_bytes;
        if ((unit & 1) != 0 && holds_addresses(source - from.unit_bytes, from)) {
            for (size_t i = 0; i < conn::kUnitAddresses; ++i) {
                std::memcpy(target + to.addresses_at[i], source + from.addresses_at[i], 16);
            }
            continue;
        }
        for (size_t field = 0; field < conn::kEntryFields; ++field) {
            set_bits(target, to.fields[field], bits_at(source, from.fields[field]));
        }
    }
    return memory;
}

}  // namespace penstock::test
