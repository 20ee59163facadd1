// SPDX-License-Identifier: Apache-2.0
// Places a connection table in memory: its size, and a new table.
#include <cstring>
#include <string>

#include "dataplane/base/hash.hpp"
#include "dataplane/conn/table.hpp"
#include "dataplane/conn/table_layout.hpp"

namespace penstock::conn {
namespace {

using detail::Bucket;
using detail::buckets_for;
using detail::Header;
using detail::units_for;

}  // namespace

size_t Table::memory_needed(uint32_t capacity) noexcept {
    if (capacity == 0 || capacity > kCapacityMax) {
        return 0;
    }
    return sizeof(Header) + buckets_for(capacity) * sizeof(Bucket) + units_for(capacity) * sizeof(Entry);
}

Table::Table(std::span<std::byte> memory, uint32_t capacity) noexcept
    : header_(reinterpret_cast<Header*>(memory.data())),
      buckets_(reinterpret_cast<Bucket*>(memory.data() + sizeof(Header))),
      entries_(
          reinterpret_cast<Entry*>(memory.data() + sizeof(Header) + buckets_for(capacity) * sizeof(Bucket))),
      buckets_count_(buckets_for(capacity)),
      capacity_(capacity),
      mix_(header_->secret) {}

Result<Table> Table::create(std::span<std::byte> memory, uint32_t capacity, const HashKey& secret) {
    const size_t needed = memory_needed(capacity);
    if (needed == 0) {
        return fail(Errc::InvalidArgument, "connection table: capacity " + std::to_string(capacity) +
                                               " is not between 1 and " + std::to_string(kCapacityMax));
    }
    if (memory.size() < needed || reinterpret_cast<uintptr_t>(memory.data()) % kCacheLine != 0) {
        return fail(Errc::InvalidArgument, "connection table: " + std::to_string(capacity) +
                                               " connections need " + std::to_string(needed) +
                                               " bytes from the start of a cache line");
    }
    std::memset(memory.data(), 0, needed);
    auto* header = reinterpret_cast<Header*>(memory.data());
    header->magic = Header::kMagic;
    header->version = Header::kVersion;
    header->capacity = capacity;
    header->secret = secret;
    return Table(memory, capacity);
}

}  // namespace penstock::conn
