// SPDX-License-Identifier: Apache-2.0
#include "dataplane/nat/reply_hash.hpp"

#include <gtest/gtest.h>

#include "tests/support/reply_hashes.hpp"

namespace penstock::nat {
namespace reply_hash_test {

TEST(ReplyHash, NamesTheWorkerOfATableEntry) {
    const ReplyHash hash = test::hash_in_turn(128, 3);
    for (const test::RssVector& vector : test::kRssSuite) {
        const packet::FlowKey key{*IpAddr::parse(vector.source), *IpAddr::parse(vector.destination),
                                  vector.source_port, vector.destination_port};
        EXPECT_EQ(worker_of(hash, key).value, vector.tuple % 128 % 3) << key.to_string();
    }
}

struct ObstacleCase {
    const char* name;
    ReplyHash hash;
    uint32_t workers;
    const char* expected;  // part of the text; "": no obstacle
};

ReplyHash changed(ReplyHash hash, void (*change)(ReplyHash&)) {
    change(hash);
    return hash;
}

TEST(ReplyHash, SaysWhatKeepsItFromBeingUsed) {
    const ObstacleCase cases[] = {
        {"one worker", test::hash_in_turn(128, 1), 1, ""},
        {"two workers", test::hash_in_turn(128, 2), 2, ""},
        {"three workers of a small table", test::hash_in_turn(64, 3), 3, ""},
        {"as many workers as limits allow", test::hash_in_turn(512, 64), 64, ""},
        {"no table", test::hash_in_turn(0, 2), 2, "0 entries"},
        {"a table that no mask can index", test::hash_in_turn(100, 2), 2,
         "100 entries, which is not a power of two"},
        {"a table larger than any known", test::hash_in_turn(8'192, 2), 2, "8192 entries"},
        {"a worker that there is not", test::hash_in_turn(128, 4), 3,
         "contains worker 3, but the number of workers is 3"},
        {"a worker without an entry", test::hash_in_turn(128, 2), 3,
         "worker 2 would own 0 in 128 of the SNAT ports towards some endpoints over IPv4"},
        {"a worker with far fewer entries than the others",
         changed(test::hash_in_turn(128, 2),
                 [](ReplyHash& h) {
                     for (size_t i = 0; i < h.worker_of.size(); ++i) {
                         h.worker_of[i] = {static_cast<uint8_t>(i < 20 ? 1 : 0)};
                     }
                 }),
         2, "worker 1 would own 20 in 128"},
        {"five queues for four workers are uneven, and enough",
         changed(test::hash_in_turn(128, 5),
                 [](ReplyHash& h) {
                     for (WorkerId& w : h.worker_of) {
                         w.value %= 4;
                     }
                 }),
         4, ""},
        {"no kind of packet",
         changed(test::hash_in_turn(128, 2), [](ReplyHash& h) { h.tcp4 = h.udp4 = h.tcp6 = h.udp6 = false; }),
         2, "neither"},
        {"a key too short for IPv6",
         changed(test::hash_in_turn(128, 2), [](ReplyHash& h) { h.key.resize(39); }), 2,
         "39 bytes, and IPv6 needs 40"},
        {"a key long enough for IPv4, which is all it covers",
         changed(test::hash_in_turn(128, 2),
                 [](ReplyHash& h) {
                     h.key.resize(16);
                     h.tcp6 = h.udp6 = false;
                 }),
         2, ""},
        {"a key of 52 bytes",
         changed(test::hash_in_turn(512, 4), [](ReplyHash& h) { h.key.resize(52, 0x3c); }), 4, ""},
        // Every tuple hashes to 0: all ports belong to worker 0.
        {"a key of zeros", changed(test::hash_in_turn(128, 2), [](ReplyHash& h) { h.key.assign(40, 0); }), 2,
         "worker 1 would own 0 in 1 of"},
        // Each bit of a tuple adds all ones or nothing, so only two entries are reached.
        {"a key of ones", changed(test::hash_in_turn(128, 4), [](ReplyHash& h) { h.key.assign(40, 0xff); }),
         4, "in 2 of"},
        // The usual symmetric key repeats every 16 bits: the low seven bits of the port's windows still
        // distinguish all entries.
        {"a key of period 16",
         changed(test::hash_in_turn(128, 4),
                 [](ReplyHash& h) {
                     for (size_t i = 0; i < h.key.size(); ++i) {
                         h.key[i] = i % 2 == 0 ? 0x6d : 0x5a;
                     }
                 }),
         4, ""},
        // The port's windows start at bit 80: they determine nothing of the table's index over IPv4, but they
        // do over IPv6.
        {"a key that is blind to the port over IPv4 alone",
         changed(test::hash_in_turn(128, 2),
                 [](ReplyHash& h) {
                     for (size_t i = 10; i < 17; ++i) {
                         h.key[i] = 0;
                     }
                 }),
         2, "over IPv4"},
    };
    for (const ObstacleCase& c : cases) {
        const std::string obstacle = obstacle_of(c.hash, c.workers);
        if (*c.expected == '\0') {
            EXPECT_EQ(obstacle, "") << c.name;
        } else {
            EXPECT_NE(obstacle.find(c.expected), std::string::npos) << c.name << ": " << obstacle;
        }
    }
}

}  // namespace reply_hash_test
}  // namespace penstock::nat
