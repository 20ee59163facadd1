// SPDX-License-Identifier: Apache-2.0
// The index of connections by backend, compared with the connection table: the same contents after random
// histories, and walks that visit each connection exactly once while the table changes.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "dataplane/conn/backend_index.hpp"
#include "dataplane/conn/table.hpp"
#include "tests/support/aligned_memory.hpp"
#include "tests/support/prng.hpp"

namespace penstock::conn {
namespace backend_index_property_test {

constexpr uint32_t kCapacity = 512;
constexpr uint32_t kBackends = 7;  // few, so that lists are long and sometimes empty

class BackendIndexProperty : public testing::Test {
 protected:
    // One in four is of IPv6; its second unit is never in a list. Unset if the table is full or already has
    // the tuple.
    ConnectionIndex open() {
        const auto n = static_cast<uint32_t>(prng.below(1 << 20));
        Connection connection;
        const auto address = [&](uint32_t host) {
            if (n % 4 != 0) {
                return IpAddr::v4(Be32::from_host(host));
            }
            return IpAddr::v6({0x20, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, static_cast<uint8_t>(host >> 24),
                               static_cast<uint8_t>(host >> 16), static_cast<uint8_t>(host >> 8),
                               static_cast<uint8_t>(host)});
        };
        connection.forward = {
            .source = address(0x0a000000 + n), .destination = address(1), .destination_port = 80};
        connection.reverse = {
            .source = address(2), .destination = address(0x0b000000 + n), .source_port = 9376};
        connection.backend = {static_cast<uint32_t>(prng.below(kBackends))};
        const Inserted inserted =
            table.insert(connection, table.hash(connection.forward), table.hash(connection.reverse));
        if (inserted.status == InsertStatus::Inserted) {
            index.add(inserted.index, connection.backend);
            live.push_back(inserted.index);
        }
        return inserted.index;
    }
    void close(size_t at) {
        index.remove(live[at], table.at(live[at]).backend);
        table.erase(live[at]);
        live[at] = live.back();
        live.pop_back();
    }
    void close_any() {
        if (!live.empty()) {
            close(prng.below(live.size()));
        }
    }
    [[nodiscard]] std::map<uint32_t, std::set<uint32_t>> by_table() const {
        std::map<uint32_t, std::set<uint32_t>> by;
        for (uint32_t unit = 0; unit < table.high_water(); ++unit) {
            if (table.is_live(unit)) {
                by[table.at({unit}).backend.value].insert(unit);
            }
        }
        return by;
    }
    void expect_same() const {
        std::map<uint32_t, std::set<uint32_t>> by = by_table();
        for (uint32_t backend = 0; backend < kBackends; ++backend) {
            std::set<uint32_t> listed;
            index.for_each({backend}, [&](ConnectionIndex flow) {
                EXPECT_TRUE(listed.insert(flow.value).second) << "listed twice";
            });
            EXPECT_EQ(listed, by[backend]) << "backend " << backend;
        }
    }

    test::Prng prng;
    test::AlignedMemory memory{Table::memory_needed(kCapacity)};
    Table table = std::move(*Table::create(memory.span(), kCapacity, {prng.next(), prng.next()}));
    std::vector<BackendLink> links = std::vector<BackendLink>(kCapacity);
    std::vector<uint32_t> heads = std::vector<uint32_t>(kBackends);
    BackendIndex index{links, heads};
    std::vector<ConnectionIndex> live;
};

TEST_F(BackendIndexProperty, HoldsWhatTheTableHolds) {
    for (int step = 0; step < 20'000; ++step) {
        // Filling and emptying alternate, up to both limits.
        prng.below(100) < ((step / 2'500) % 2 == 0 ? 75u : 25u) ? static_cast<void>(open()) : close_any();
        if (step % 97 == 0) {
            expect_same();
        }
    }
    while (!live.empty()) {
        close_any();
    }
    expect_same();
    EXPECT_EQ(std::ranges::count(heads, 0u), static_cast<long>(kBackends));
}

// A walk in small slices, with connections opened and closed between them. It visits each connection once
// that was open at its start and until its turn, and none that was opened later.
TEST_F(BackendIndexProperty, AWalkGoesOnWhateverComesAndGoes) {
    for (int round = 0; round < 300; ++round) {
        for (int i = 0; i < 200; ++i) {
            open();
        }
        const BackendId backend{static_cast<uint32_t>(prng.below(kBackends))};
        std::set<uint32_t> expected = by_table()[backend.value];
        std::set<uint32_t> lives;  // their generations, because a unit may be reused during the walk
        for (const uint32_t unit : expected) {
            lives.insert(table.generation({unit}));
        }
        std::set<uint32_t> met, ended_unmet;
        index.begin_walk(backend);
        while (!index.is_walk_over()) {
            std::vector<ConnectionIndex> slice(1 + prng.below(8));
            const uint32_t count = index.walk(slice);
            const uint32_t keep = prng.one_in(4) ? static_cast<uint32_t>(prng.below(count)) : count;
            if (keep < count) {
                index.walk_again_from(slice[keep]);  // as a caller does that may not end more of them now
            }
            for (uint32_t i = 0; i < keep; ++i) {
                EXPECT_TRUE(met.insert(table.generation(slice[i])).second) << "met twice";
                if (prng.one_in(2)) {
                    close(static_cast<size_t>(std::ranges::find(live, slice[i]) - live.begin()));
                }
            }
            for (uint64_t i = prng.below(12); i > 0; --i) {
                if (prng.one_in(2)) {
                    open();
                } else if (!live.empty()) {
                    const size_t at = prng.below(live.size());
                    const uint32_t generation = table.generation(live[at]);
                    if (lives.contains(generation) && !met.contains(generation)) {
                        ended_unmet.insert(generation);
                    }
                    close(at);
                }
            }
        }
        std::set<uint32_t> wanted;
        std::ranges::set_difference(lives, ended_unmet, std::inserter(wanted, wanted.end()));
        EXPECT_EQ(met, wanted);
        expect_same();
        while (live.size() > 100) {
            close_any();
        }
    }
}

}  // namespace backend_index_property_test
}  // namespace penstock::conn
