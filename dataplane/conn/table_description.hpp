// SPDX-License-Identifier: Apache-2.0
// Describes where the fields of a connection are in a table: enough to read the entries of a table that
// another build has laid out. A process leaves the description of its layout beside its tables, so that an
// older build reads those of a newer one as well, and the other way round (docs/adr/0042).
//
// A layout is where a field is and how wide it is. What its values mean (the number of a state, the unit of a
// time, the two units of an IPv6 connection) is the same in all layouts with the same kMeaning.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

namespace penstock::conn {

enum class FieldNeed : uint8_t {
    Always,
    Optional,  // a reader computes it from the other fields
};

// Fields of an entry. Checksum differences are not among them: a reader computes them.
// X(Enumerator, bits in this build, FieldNeed)
#define PENSTOCK_ENTRY_FIELDS(X)      \
    X(Generation, 32, Always)         \
    X(Protocol, 8, Always)            \
    X(Families, 8, Always)            \
    X(State, 8, Always)               \
    X(SourceKept, 1, Always)          \
    X(IsPinned, 1, Optional)          \
    X(SnatIndex, 6, Optional)         \
    X(ForwardV4Addresses, 64, Always) \
    X(ReverseV4Addresses, 64, Always) \
    X(ForwardPorts, 32, Always)       \
    X(ReversePorts, 32, Always)       \
    X(LastSeen, 32, Always)           \
    X(OpenedAt, 32, Always)           \
    X(Service, 32, Always)            \
    X(Backend, 32, Optional)          \
    X(SnatPool, 32, Optional)         \
    X(ForwardTag, 32, Always)         \
    X(ReverseTag, 32, Always)

enum class EntryField : uint8_t {
#define PENSTOCK_X(name, bits, need) name,
    PENSTOCK_ENTRY_FIELDS(PENSTOCK_X)
#undef PENSTOCK_X
};
inline constexpr std::array kFieldBits{
#define PENSTOCK_X(name, bits, need) uint16_t{bits},
    PENSTOCK_ENTRY_FIELDS(PENSTOCK_X)
#undef PENSTOCK_X
};
inline constexpr std::array kFieldNeeds{
#define PENSTOCK_X(name, bits, need) FieldNeed::need,
    PENSTOCK_ENTRY_FIELDS(PENSTOCK_X)
#undef PENSTOCK_X
};
inline constexpr size_t kEntryFields = kFieldBits.size();
// Number of 16-byte addresses in the second unit of a connection.
inline constexpr size_t kUnitAddresses = 4;

// In bits from the start of a unit; the lowest bit of a byte is its first one.
struct FieldPlace {
    uint16_t at = 0;
    uint16_t bits = 0;  // 0: the layout has no such field
    bool operator==(const FieldPlace&) const = default;
};

// Part of a table file: plain data without padding.
struct TableDescription {
    static constexpr uint32_t kMeaning = 1;
    uint32_t meaning = kMeaning;
    uint32_t version = 0;   // of the layout, as in the header of each table
    uint64_t units_at = 0;  // bytes from the start of a table to its first unit
    uint32_t units = 0;     // of a table
    uint16_t unit_bytes = 0;
    uint16_t high_water_at = 0;  // bytes from the start of a table to the number of units ever used (32 bits)
    // Bytes from the start of a second unit: forward source and destination, reverse source and destination.
    std::array<uint16_t, kUnitAddresses> addresses_at{};
    std::array<FieldPlace, kEntryFields> fields{};  // by EntryField

    [[nodiscard]] const FieldPlace& place(EntryField field) const noexcept {
        return fields[static_cast<size_t>(field)];
    }
    bool operator==(const TableDescription&) const = default;
};
static_assert(std::is_trivially_copyable_v<TableDescription> && sizeof(TableDescription) == 104);

// Describes the tables of this build for `capacity` units, as in Table::create().
[[nodiscard]] TableDescription describe_tables(uint32_t capacity) noexcept;

// Why this build cannot read tables with this description, which is untrusted: half a sentence that begins
// with the object. Empty: it can, and every access lies inside the first `table_bytes` of a table.
[[nodiscard]] std::string obstacle_of(const TableDescription& description, uint64_t table_bytes);

// Reads fields of units. For a description without an obstacle.
class FieldReader {
 public:
    FieldReader() = default;
    explicit FieldReader(const TableDescription& description) noexcept;
    // 0 if the layout has no such field.
    [[nodiscard]] uint64_t read(const std::byte* unit, EntryField field) const noexcept;

 private:
    // The eight bytes that contain the field.
    struct Window {
        uint16_t at;
        uint8_t shift;
        uint64_t mask;
    };
    std::array<Window, kEntryFields> windows_{};
};

}  // namespace penstock::conn
