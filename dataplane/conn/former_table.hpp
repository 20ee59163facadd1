// SPDX-License-Identifier: Apache-2.0
// Reads the connection table that a former process left (table.hpp), as far as it can be read: the process
// may have been killed at any instruction, and the memory may be damaged in any way. Buckets, free lists and
// counts are not read. Each unit is examined by itself.
//
// A process that is killed in an insertion leaves an even generation, because the generation becomes odd
// last. One that is killed in a removal leaves either a complete connection or an even generation. While a
// pair is being filled or freed, its first unit has an even generation and its families say that the second
// unit holds addresses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "dataplane/base/result.hpp"
#include "dataplane/conn/connection.hpp"
#include "dataplane/conn/entry.hpp"

namespace penstock::conn {

class FormerTable {
 public:
    // Corrupt: the memory holds no table of this layout that fits into it. `memory` is borrowed.
    static Result<FormerTable> open(std::span<const std::byte> memory);

    // Units that may hold connections.
    [[nodiscard]] uint32_t units() const noexcept { return units_; }

    enum class Unit : uint8_t {
        Empty,    // no connection starts here
        Damaged,  // one does, but a field has a value that no connection has
        Live,
    };
    // Reads the unit. If Live, `out` has a known protocol, a state of it, and keys of the families that the
    // entry says. Nothing else about it is certain.
    [[nodiscard]] Unit read(uint32_t unit, Connection& out) const noexcept;

 private:
    const Entry* entries_ = nullptr;
    uint32_t units_ = 0;
};

}  // namespace penstock::conn
