// SPDX-License-Identifier: Apache-2.0
// Connection tables in layouts that no build has, as a process of another build leaves them.
#pragma once

#include <cstddef>
#include <span>

#include "dataplane/conn/table_description.hpp"
#include "tests/support/aligned_memory.hpp"
#include "tests/support/prng.hpp"

namespace penstock::test {

// Any layout that has room for the values of `own`: other order, offsets of single bits, gaps, other sizes of
// a unit and of the memory before the units. Optional fields may be missing.
[[nodiscard]] conn::TableDescription random_layout(Prng& random, const conn::TableDescription& own);

// Bytes of a table with this description.
[[nodiscard]] size_t bytes_of_table(const conn::TableDescription& description);

// The same units in the layout `to`, which has as many of them. `table` may be one that a process has left in
// the middle of a change. Bytes that belong to no field are noise.
[[nodiscard]] AlignedMemory in_layout(std::span<const std::byte> table, const conn::TableDescription& from,
                                      const conn::TableDescription& to, Prng& noise);

}  // namespace penstock::test
