// SPDX-License-Identifier: Apache-2.0
// Any bytes as a batch of copies from another gateway. Decoding returns either an error of a limited length,
// or records with connections that a connection table takes and whose times do not contradict each other.
// Sent on, they arrive unchanged.
//
// The first byte selects the rate of the clock, the others are the batch.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "dataplane/base/check.hpp"
#include "dataplane/conn/table.hpp"
#include "dataplane/copies/record.hpp"
#include "tests/support/aligned_memory.hpp"

namespace penstock::test {
namespace {

using conn::Connection;

constexpr uint32_t kCapacity = 64;
constexpr CoarseTime kNow{7};

void check_connection(const Connection& connection) {
    PENSTOCK_CHECK(conn::is_state(connection.forward.protocol, connection.state));
    PENSTOCK_CHECK(connection.forward.protocol == connection.reverse.protocol);
    PENSTOCK_CHECK(units_between(connection.opened_at, connection.last_seen) >= 0);
    PENSTOCK_CHECK(units_between(connection.last_seen, kNow) >= 0);
    PENSTOCK_CHECK(units_between(connection.opened_at, kNow) >= 0);
    for (const packet::FlowKey& key : {connection.forward, connection.reverse}) {
        PENSTOCK_CHECK(key.source.is_v4() == key.destination.is_v4());
        PENSTOCK_CHECK(!key.source.is_unspecified() && !key.source.is_multicast() && key.source_port != 0);
        PENSTOCK_CHECK(!key.destination.is_unspecified() && !key.destination.is_multicast() &&
                       key.destination_port != 0);
    }
    PENSTOCK_CHECK(!connection.source_kept || connection.reverse.destination == connection.forward.source);
}

void check_same(const Connection& one, const Connection& other) {
    PENSTOCK_CHECK(one.forward == other.forward && one.reverse == other.reverse);
    PENSTOCK_CHECK(one.last_seen == other.last_seen && one.opened_at == other.opened_at);
    PENSTOCK_CHECK(one.state == other.state && one.source_kept == other.source_kept &&
                   one.tags == other.tags);
}

// The table keeps what was decoded.
void check_in_table(const std::vector<copies::Record>& records) {
    static const AlignedMemory memory(conn::Table::memory_needed(kCapacity));
    auto table = conn::Table::create(memory.span(), kCapacity, {1, 2});
    PENSTOCK_CHECK(table.has_value());
    for (const copies::Record& record : records) {
        const Connection& connection = record.connection;
        if (record.kind == copies::Record::Kind::Ended || table->units_used() + 2 > kCapacity) {
            continue;
        }
        const conn::Inserted inserted =
            table->insert(connection, table->hash(connection.forward), table->hash(connection.reverse));
        if (inserted.status == conn::InsertStatus::Inserted) {
            check_same(table->connection(inserted.index), connection);
        }
    }
}

}  // namespace
}  // namespace penstock::test

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace penstock;
    if (size == 0) {
        return 0;
    }
    const CoarseClock clock(TscRate{1'000'000'000 + uint64_t{data[0]} * 16'000'000});
    const std::span<const std::byte> batch(reinterpret_cast<const std::byte*>(data + 1), size - 1);
    const auto records = copies::decode(batch, test::kNow, clock);
    if (!records) {
        const std::string& what = records.error().what;
        PENSTOCK_CHECK(records.error().code == Errc::InvalidArgument);
        PENSTOCK_CHECK(!what.empty() && what.size() < 200);
        PENSTOCK_CHECK(std::ranges::all_of(what, [](char c) { return c >= ' ' && c <= '~'; }));
        return 0;
    }
    PENSTOCK_CHECK(records->size() <= batch.size() / copies::kEndedBytes);
    std::vector<std::byte> sent_on;
    for (const copies::Record& record : *records) {
        if (record.kind == copies::Record::Kind::Ended) {
            copies::append_ended(sent_on, record.slot);
            continue;
        }
        test::check_connection(record.connection);
        copies::append_held(sent_on, record.slot, record.connection, test::kNow, clock);
    }
    PENSTOCK_CHECK(sent_on.size() == batch.size());
    const auto again = copies::decode(sent_on, test::kNow, clock);
    PENSTOCK_CHECK(again && again->size() == records->size());
    for (size_t i = 0; i < records->size(); ++i) {
        PENSTOCK_CHECK((*again)[i].kind == (*records)[i].kind && (*again)[i].slot == (*records)[i].slot);
        test::check_same((*again)[i].connection, (*records)[i].connection);
    }
    test::check_in_table(*records);
    return 0;
}
