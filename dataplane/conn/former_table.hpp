// SPDX-License-Identifier: Apache-2.0
// Reads the connection table that a former process left (table.hpp), as far as it can be read: the process
// may have been killed at any instruction, and the memory may be damaged in any way. Buckets, free lists and
// counts are not read. Each unit is examined by itself. A table of another layout is read by its description
// (table_description.hpp).
//
// A process that is killed in an insertion leaves an even generation, because the generation becomes odd
// last. One that is killed in a removal leaves either a complete connection or an even generation. While a
// pair is being filled or freed, its first unit has an even generation and its families say that the second
// unit holds addresses.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "dataplane/base/result.hpp"
#include "dataplane/conn/connection.hpp"
#include "dataplane/conn/entry.hpp"
#include "dataplane/conn/table_description.hpp"

namespace penstock::conn {

class FormerTable {
 public:
    // Corrupt: the memory holds no table of this layout that fits into it. `memory` is borrowed.
    static Result<FormerTable> open(std::span<const std::byte> memory);
    // A table of another layout. InvalidArgument: this build cannot read it (obstacle_of()).
    static Result<FormerTable> open(std::span<const std::byte> memory, const TableDescription& description);

    // Units that may hold connections.
    [[nodiscard]] uint32_t units() const noexcept { return units_; }

    enum class Unit : uint8_t {
        Empty,    // no connection starts here
        Damaged,  // one does, but a field has a value that no connection has
        // One does, but this build does not know its protocol, its state or its families. Only in a table of
        // another layout, whose writer may have more of them.
        Unknown,
        Live,
    };
    // Reads the unit. If Live, `out` has a known protocol, a state of it, and keys of the families that the
    // entry says. Nothing else about it is certain.
    [[nodiscard]] Unit read(uint32_t unit, Connection& out) const noexcept;

 private:
    [[nodiscard]] Unit read_described(uint32_t unit, Connection& out) const noexcept;
    [[nodiscard]] packet::FlowKey described_key(const std::byte* unit, Direction direction,
                                                bool has_two_units) const noexcept;

    const Entry* entries_ = nullptr;  // of the layout of this build
    uint32_t units_ = 0;
    // Of another layout: otherwise null.
    const std::byte* first_ = nullptr;
    uint16_t unit_bytes_ = 0;
    std::array<uint16_t, kUnitAddresses> addresses_at_{};
    FieldReader fields_;
};

}  // namespace penstock::conn
