// SPDX-License-Identifier: Apache-2.0
// When each VIP is announced on its link (PRESENCE-004): at once, after 0.1 and 1 s in case a frame is lost,
// then once a minute, which is less than the ageing time of bridges (300 s). Each announcement reaches all
// hosts of the link, so their rate is limited. Pure: times are arguments.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "dataplane/route/route_table.hpp"

namespace penstock::gateway {

class AnnouncementSchedule {
 public:
    using Time = std::chrono::steady_clock::time_point;
    // Times after the VIP appeared, then the period.
    static constexpr std::array<std::chrono::milliseconds, 3> kFirst{
        std::chrono::milliseconds(0), std::chrono::milliseconds(100), std::chrono::milliseconds(1'000)};
    static constexpr std::chrono::seconds kPeriod{60};
    // At most 4,000 a second: 10,000 VIPs that appear together are announced once within 2.5 s, and a twin's
    // queue holds a whole batch (1,000 frames).
    static constexpr size_t kBatch = 64;
    static constexpr std::chrono::milliseconds kBatchEvery{16};

    // Begins the announcements of a VIP; no effect if they have begun. A VIP on another twin is another one.
    void add(const route::LocalAddress& vip, Time now);
    void remove(const route::LocalAddress& vip);
    void clear();
    // The VIPs to announce now, the longest due first: at most kBatch, and none within kBatchEvery after the
    // last ones. Announcements that were missed because of a late call are not repeated.
    std::vector<route::LocalAddress> take_due(Time now);
    // When take_due() has a result next; empty: never.
    [[nodiscard]] std::optional<Time> next() const;

 private:
    using Key = std::tuple<NicPortId, IpAddr, uint8_t>;
    struct Entry {
        Time since;
        Time due;
        size_t sent = 0;
    };
    static Key key_of(const route::LocalAddress& vip) { return {vip.port, vip.address, vip.prefix_length}; }
    std::map<Key, Entry> entries_;
    std::set<std::pair<Time, Key>> due_;
    Time next_batch_{};
};

}  // namespace penstock::gateway
