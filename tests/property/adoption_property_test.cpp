// SPDX-License-Identifier: Apache-2.0
// A gateway with random Services and a random history of packets ends at an arbitrary moment. Another one,
// with other numbers, workers, capacities and secrets, adopts what it left. From then on both get the same
// packets, and must send the same: the same endpoint, the same SNAT address and port, the same checksums. The
// tables of half of the former gateways have a layout of their own.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "dataplane/conn/former_table.hpp"
#include "dataplane/conn/table_description.hpp"
#include "tests/property/random_gateways.hpp"
#include "tests/support/other_layout.hpp"

namespace penstock::test {
namespace adoption_property_test {

using namespace random_gateways;

class Adoption : public TwoGateways {
 protected:
    // Leaves one unit of these tables as a process does that is ended while it removes the connection, or
    // while it inserts it. Returns the former connection.
    std::optional<conn::Connection> end_within_a_change(adopt::FormerTables& left,
                                                        std::vector<AlignedMemory>& memory,
                                                        uint32_t capacity) {
        for (std::span<const std::byte>& table : left.connections) {
            const AlignedMemory& copy = memory.emplace_back(table.size());
            std::ranges::copy(table, copy.span().begin());
            table = copy.span();
        }
        const size_t worker = random_.below(left.connections.size());
        const auto table = conn::FormerTable::open(left.connections[worker]);
        const auto unit = static_cast<uint32_t>(random_.below(table->units()));
        conn::Connection connection;
        if (table->read(unit, connection) != conn::FormerTable::Unit::Live) {
            return std::nullopt;
        }
        auto* entries = reinterpret_cast<conn::Entry*>(memory[worker].span().data() +
                                                       conn::Table::memory_needed(capacity)) -
                        (capacity + 1) / 2 * 2;
        conn::Entry& entry = entries[unit];
        const bool has_two = entry.is_v6();
        ++entry.generation;  // a removal
        if (random_.one_in(2)) {
            // An insertion: some words are still those of a free unit.
            const auto filled = load<std::array<uint64_t, 8>>(&entry);
            std::fill_n(reinterpret_cast<std::byte*>(&entry) + 8, sizeof(entry) - 8, std::byte{0});
            std::memcpy(static_cast<void*>(&entry), filled.data(), 8 + 8 * random_.below(8));
        } else if (has_two && random_.one_in(2)) {
            entries[unit + 1].generation = 0;
            if (random_.one_in(2)) {
                entry.families = conn::KeyFamilies::V4;
            }
        }
        return connection;
    }

    // These tables as another build leaves them.
    void convert(adopt::FormerTables& left, std::vector<AlignedMemory>& memory, uint32_t capacity) {
        const conn::TableDescription own = conn::describe_tables(capacity);
        left.layout = random_layout(random_, own);
        for (std::span<const std::byte>& table : left.connections) {
            memory.push_back(in_layout(table, own, *left.layout, random_));
            table = memory.back().span();
        }
        ++converted_;
    }

    uint64_t ended_ = 0;      // changes of a table in which the process ended
    uint64_t converted_ = 0;  // tables of another layout
};

TEST_F(Adoption, ChangesNothingForTheConnections) {
    for (int round = 0; round < 60; ++round) {
        SCOPED_TRACE("round " + std::to_string(round));
        flows_.clear();
        std::vector<TestService> services = services_of(random_);
        const auto receivers = random_.next();
        Gateway former(options_of(random_), receivers);
        former.gateway.publish(services);
        for (uint64_t steps = random_.between(20, 400); steps > 0; --steps) {
            act(former, services);
            if (random_.one_in(20)) {
                former.gateway.advance_milliseconds(random_.below(3'000));
            }
        }
        former.gateway.age();
        former.gateway.take_own_segments();

        // Half of the heirs differ in everything, the others in one thing or nothing.
        VirtualGateway::Options options = random_.one_in(2) ? options_of(random_) : former.gateway.options();
        options.connections = static_cast<uint32_t>(random_.between(600, 5'000));
        if (random_.one_in(2)) {
            options.owner_key = former.gateway.owner_key();
        }
        Gateway heir(options, random_.one_in(2) ? receivers : random_.next());
        std::ranges::reverse(services);
        heir.gateway.publish(services);
        std::vector<conn::Connection> connections = connections_of(former.gateway);
        adopt::FormerTables left = former.gateway.left_to(heir.gateway);
        if (random_.one_in(4)) {
            left.services.reset();
        }
        std::vector<AlignedMemory> memory;
        uint64_t former_only = 0;
        if (random_.one_in(3)) {
            if (const auto ended = end_within_a_change(left, memory, former.gateway.options().connections)) {
                std::erase_if(connections,
                              [&](const conn::Connection& other) { return other.forward == ended->forward; });
                ++ended_;
                former_only = 1;
            }
        }
        if (random_.one_in(2)) {
            convert(left, memory, former.gateway.options().connections);
        }
        const adopt::Report report = heir.gateway.adopt(left, former.gateway);
        ASSERT_EQ(report.converted_from.has_value(), left.layout.has_value());
        ASSERT_EQ(report.all_adopted(), connections.size());
        ASSERT_EQ(report.all_lost(), 0u);
        ASSERT_EQ(report.affinity_adopted, former.gateway.affinity().size());
        ASSERT_EQ(report.affinity_lost, 0u);
        expect_balance(heir.gateway);
        for (const Step step : {Step::Data, Step::Finish}) {
            for (uint32_t n = 0; n < connections.size() && !HasFatalFailure(); ++n) {
                expect_same(former, heir, connections[n], step, n);
                if (step == Step::Data && !HasFatalFailure()) {
                    expect_same_fragments(former, heir, connections[n].forward, n);
                    expect_same_errors(former, heir, connections[n], n);
                }
            }
        }
        if (HasFatalFailure()) {
            return;
        }
        ASSERT_EQ(heir.gateway.connections() + former_only, former.gateway.connections());
        // New flows do not collide with the adopted ones, wherever their tuples were before.
        for (int n = 0; n < 50; ++n) {
            act(heir, services);
        }
        expect_balance(heir.gateway);
        expire_all(heir.gateway);
        EXPECT_EQ(heir.gateway.connections(), 0u);
        expect_balance(heir.gateway);
        if (HasFailure()) {
            return;
        }
    }
    EXPECT_GT(fragments_, 0u);
    EXPECT_GT(errors_, 0u);
    EXPECT_GT(ended_, 0u);
    EXPECT_GT(converted_, 0u);
}

}  // namespace adoption_property_test
}  // namespace penstock::test
