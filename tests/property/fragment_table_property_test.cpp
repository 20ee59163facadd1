// SPDX-License-Identifier: Apache-2.0
// The fragment table, compared with a map of datagrams that records each byte. There are few datagrams at a
// time, so that none is evicted.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "dataplane/pipeline/fragments/fragment_table.hpp"
#include "tests/support/prng.hpp"

namespace penstock::pipeline {
namespace fragment_table_property_test {

using Kind = DatagramFate::Kind;

constexpr TscRate kRate{};
constexpr uint32_t kUnits = 80;  // units of 8 bytes in the longest datagram

struct Datagram {
    TscTime since;
    std::vector<bool> seen = std::vector<bool>(kUnits);
    uint32_t total = 0;  // units; 0: unknown
    Kind fate = Kind::Unknown;
    uint32_t under_way = 0;
    std::vector<uintptr_t> waiting;
    TscTime waits_since;

    [[nodiscard]] uint32_t pieces() const {
        uint32_t count = 0;
        for (uint32_t at = 0; at < kUnits; ++at) {
            count += seen[at] && (at == 0 || !seen[at - 1]) ? 1 : 0;
        }
        return count;
    }
    [[nodiscard]] bool is_whole() const {
        return total != 0 && static_cast<uint32_t>(std::count(seen.begin(), seen.end(), true)) == total;
    }
};

class Model {
 public:
    std::map<uint32_t, Datagram> datagrams;
    std::deque<uintptr_t> ready;
    std::map<uintptr_t, uint32_t> of;  // the datagram of each handle

    void forget_if_expired(uint32_t id, TscTime now) {
        const auto known = datagrams.find(id);
        if (known != datagrams.end() && known->second.under_way == 0 &&
            ticks_between(known->second.since, now) >= kRate.milliseconds(kDatagramMs)) {
            datagrams.erase(known);
        }
    }
    void decide(Datagram& datagram, Kind fate) {
        datagram.fate = fate;
        ready.insert(ready.end(), datagram.waiting.begin(), datagram.waiting.end());
        datagram.waiting.clear();
    }
    std::optional<DropReason> take(uint32_t id, uint32_t begin, uint32_t end, bool is_last, TscTime now) {
        forget_if_expired(id, now);
        Datagram& datagram = datagrams.try_emplace(id, Datagram{.since = now}).first->second;
        if (datagram.fate == Kind::Dead) {
            return DropReason::Fragment;
        }
        const auto seen_behind = [&](uint32_t unit) {
            return std::find(datagram.seen.begin() + unit, datagram.seen.end(), true) != datagram.seen.end();
        };
        if (is_last ? (datagram.total != 0 && datagram.total != end) || seen_behind(end)
                    : datagram.total != 0 && end >= datagram.total) {
            decide(datagram, Kind::Dead);
            return DropReason::BadFragment;
        }
        const auto old = static_cast<uint32_t>(
            std::count(datagram.seen.begin() + begin, datagram.seen.begin() + end, true));
        if (old > 0) {
            if (old < end - begin) {
                decide(datagram, Kind::Dead);
            }
            return DropReason::FragmentOverlap;
        }
        Datagram after = datagram;
        std::fill(after.seen.begin() + begin, after.seen.begin() + end, true);
        if (after.pieces() > 32) {
            decide(datagram, Kind::Dead);
            return DropReason::FragmentsFull;
        }
        datagram = after;
        datagram.total = is_last ? end : datagram.total;
        ++datagram.under_way;
        return std::nullopt;
    }
    void served(uint32_t id) {
        Datagram& datagram = datagrams.at(id);
        if (--datagram.under_way == 0 && datagram.is_whole()) {
            datagrams.erase(id);
        }
    }
};

TEST(FragmentTableProperty, AgreesWithAMapOfBytes_NAT007) {
    test::Prng random;
    const auto owned = std::make_unique<FragmentTable>(kRate);
    FragmentTable& table = *owned;
    Model model;
    TscTime now{1};
    uintptr_t next_handle = 0;
    uint32_t ended_well = 0, ended_badly = 0;
    const auto key_of = [](uint32_t id) {
        return DatagramKey::of(IpAddr::v4(192, 0, 2, static_cast<uint8_t>(id % 3)),
                               IpAddr::v4(80, 11, 12, 10), 17, id, HandoffNote{});
    };
    const auto fates = [&](uint32_t id) { return model.datagrams.contains(id); };

    for (int step = 0; step < 300'000; ++step) {
        // Waves: of fast, complete datagrams, and of slow ones that expire.
        const bool is_slow = (step / 20'000) % 2 == 1;
        now = now + kRate.milliseconds(random.one_in(300) ? kDatagramMs
                                       : is_slow          ? random.below(400)
                                                          : random.below(2));
        const auto id = static_cast<uint32_t>(random.below(6));
        const bool is_tiny = (step / 5'000) % 4 == 3;  // every second unit separately: many pieces
        const auto begin = static_cast<uint32_t>(is_tiny ? 2 * random.below(kUnits / 2)
                                                         : 8 * random.below(6) + (random.one_in(30) ? 1 : 0));
        const uint32_t end = begin + (is_tiny ? 1 : random.one_in(30) ? 9 : 8);
        const bool is_last = !is_tiny && (begin == 40 || random.one_in(40));
        const packet::FragmentRange place{static_cast<uint16_t>(8 * begin), static_cast<uint16_t>(8 * end),
                                          is_last};

        const auto expected = model.take(id, begin, end, is_last, now);
        const auto taken = table.take(key_of(id), place, now);
        ASSERT_EQ(taken.has_value(), !expected.has_value()) << "step " << step;
        if (!taken) {
            ASSERT_EQ(text_of(taken.error()).counter, text_of(*expected).counter) << "step " << step;
            ++ended_badly;
        } else {
            Datagram& datagram = model.datagrams.at(id);
            ASSERT_EQ(table.fate(*taken).kind, datagram.fate) << "step " << step;
            if (begin == 0) {
                const Kind fate = random.one_in(8) ? Kind::Dead : Kind::Flow;
                table.decide(*taken, {.kind = fate});
                model.decide(datagram, fate);
            }
            if (datagram.fate != Kind::Unknown) {
                table.served(*taken);
                model.served(id);
                ended_well += fates(id) ? 0 : 1;
            } else {
                const SlotIndex slot = table.wait(*taken, now);
                ASSERT_TRUE(slot.is_set()) << "step " << step;
                table.fill(slot, reinterpret_cast<rte_mbuf*>(++next_handle), {}, {});
                if (datagram.waiting.empty()) {
                    datagram.waits_since = now;
                }
                datagram.waiting.push_back(next_handle);
                model.of[next_handle] = id;
            }
        }
        while (table.has_ready()) {
            uintptr_t handle = 0;
            DatagramIndex datagram;
            table.take_ready([&](rte_mbuf* mbuf, NicPortId, HandoffNote note) {
                handle = reinterpret_cast<uintptr_t>(mbuf);
                datagram = note.waited_for;
            });
            ASSERT_FALSE(model.ready.empty()) << "step " << step;
            ASSERT_EQ(handle, model.ready.front()) << "step " << step;
            model.ready.pop_front();
            const uint32_t whose = model.of.at(handle);
            ASSERT_TRUE(datagram.is_set()) << "step " << step;
            ASSERT_EQ(table.fate(datagram).kind, model.datagrams.at(whose).fate);
            table.served(datagram);
            model.served(whose);
            model.of.erase(handle);
        }
        ASSERT_TRUE(model.ready.empty()) << "step " << step;
        if (random.one_in(10)) {
            std::vector<uintptr_t> gone, expired;
            table.expire(now, [&](rte_mbuf* mbuf) { gone.push_back(reinterpret_cast<uintptr_t>(mbuf)); });
            std::vector<Datagram*> late;
            for (auto& [at, datagram] : model.datagrams) {
                if (!datagram.waiting.empty() &&
                    ticks_between(datagram.waits_since, now) >= kRate.milliseconds(kFragmentWaitMs)) {
                    late.push_back(&datagram);
                }
            }
            std::ranges::sort(late, [](const Datagram* a, const Datagram* b) {
                return a->waiting.front() < b->waiting.front();
            });
            for (Datagram* datagram : late) {
                expired.insert(expired.end(), datagram->waiting.begin(), datagram->waiting.end());
                datagram->under_way -= static_cast<uint32_t>(datagram->waiting.size());
                datagram->waiting.clear();
                datagram->fate = Kind::Dead;
            }
            ASSERT_EQ(gone, expired) << "step " << step;
            for (const uintptr_t handle : gone) {
                model.of.erase(handle);
            }
        }
        ASSERT_EQ(table.waiting(), model.of.size()) << "step " << step;
    }
    EXPECT_GT(ended_well, 200u);
    EXPECT_GT(ended_badly, 1'000u);
}

// Fragments that wait for a first one may fill half of the eight slots of a set: datagrams in order always
// find room in the rest.
TEST(FragmentTable, WhatWaitsLeavesRoomInItsSet_NAT007) {
    constexpr uint16_t kPlacesOfASet = 8, kMayWait = 4;
    const auto owned = std::make_unique<FragmentTable>(kRate);
    FragmentTable& table = *owned;
    const TscTime now{1};
    const auto key_of = [](uint32_t id) {
        return DatagramKey::of(IpAddr::v4(Be32::from_host(0xc0000200 + id % 1'000)),
                               IpAddr::v4(80, 11, 12, 10), 17, id, HandoffNote{});
    };
    // A complete datagram leaves no entry; the test only learns its set.
    const auto set_of = [&](uint32_t id) {
        const auto taken = table.take(key_of(id), {0, 64, true}, now);
        if (!taken) {
            return uint16_t{0xffff};
        }
        const auto set = static_cast<uint16_t>(taken->value / kPlacesOfASet);
        table.decide(*taken, {.kind = Kind::Flow});
        table.served(*taken);
        return set;
    };
    std::vector<uint32_t> same_set;
    const uint16_t set = set_of(0);
    for (uint32_t id = 1; same_set.size() < 3 * kPlacesOfASet; ++id) {
        if (set_of(id) == set) {
            same_set.push_back(id);
        }
    }
    ASSERT_EQ(table.datagrams(), 0u);
    uint32_t waiting = 0;
    for (size_t i = 0; i < 2 * kPlacesOfASet; ++i) {
        const auto later = table.take(key_of(same_set[i]), {64, 128, true}, now);
        if (!later) {
            continue;
        }
        const SlotIndex slot = table.wait(*later, now);
        if (!slot.is_set()) {
            table.served(*later);
            continue;
        }
        table.fill(slot, reinterpret_cast<rte_mbuf*>(uintptr_t{++waiting}), {}, {});
    }
    EXPECT_EQ(waiting, kMayWait);
    for (size_t i = 2 * kPlacesOfASet; i < same_set.size(); ++i) {
        EXPECT_EQ(set_of(same_set[i]), set) << "a whole datagram finds room";
    }
}

}  // namespace fragment_table_property_test
}  // namespace penstock::pipeline
