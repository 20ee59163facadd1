// SPDX-License-Identifier: Apache-2.0
#include "dataplane/conn/port_rest.hpp"

#include <gtest/gtest.h>

namespace penstock::conn {
namespace port_rest_test {

TEST(PortRest, TimeWaitIsPassedAsAStackDoes_RFC6191) {
    constexpr uint32_t kHalf = 1U << 31;
    const struct {
        const char* name;
        TcpProgress last, syn;
        bool passes;
    } cases[] = {
        {"a higher sequence number", {.seq = 100}, {.seq = 101}, true},
        {"the next one", {.seq = 100}, {.seq = 100}, false},
        {"a lower one", {.seq = 100}, {.seq = 99}, false},
        {"across zero", {.seq = 0xffff'fff0}, {.seq = 5}, true},
        {"farther than half of the numbers", {.seq = 100}, {.seq = 101 + kHalf}, false},
        {"a newer timestamp decides", {.seq = 100, .timestamp = 7}, {.seq = 50, .timestamp = 8}, true},
        {"an older one too", {.seq = 100, .timestamp = 7}, {.seq = 500, .timestamp = 6}, false},
        {"across zero likewise", {.seq = 100, .timestamp = 0xffff'ffff}, {.seq = 50, .timestamp = 1}, true},
        {"the same one does not", {.seq = 100, .timestamp = 7}, {.seq = 101, .timestamp = 7}, true},
        {"the same one does not, lower", {.seq = 100, .timestamp = 7}, {.seq = 99, .timestamp = 7}, false},
        {"only the old one", {.seq = 100, .timestamp = 7}, {.seq = 101}, true},
        {"only the new one", {.seq = 100}, {.seq = 99, .timestamp = 9}, false},
    };
    for (const auto& c : cases) {
        EXPECT_EQ(passes_time_wait(c.last, c.syn), c.passes) << c.name;
    }
}

TEST(PortRest, EndsByStateAndTime_NAT002) {
    const TscRate rate{1'000'000'000};
    const CoarseClock clock(rate);
    const PortRest rest(rate);
    const auto tcp = [](TcpState state) { return static_cast<uint8_t>(state); };
    constexpr uint64_t kLong = 100;
    const struct {
        const char* name;
        Protocol protocol;
        uint8_t state;
        uint64_t opened_ago_s, seen_ago_s;
        bool is_over;
    } cases[] = {
        {"a handshake under way", Protocol::Tcp, tcp(TcpState::SynReceived), 3, 3, false},
        {"a handshake that comes to nothing", Protocol::Tcp, tcp(TcpState::SynSent), 5, 5, true},
        {"the same, its SYN sent again", Protocol::Tcp, tcp(TcpState::SynSent), 5, 0, true},
        {"TIME-WAIT", Protocol::Tcp, tcp(TcpState::TimeWait), kLong, 59, false},
        {"TIME-WAIT that is over", Protocol::Tcp, tcp(TcpState::TimeWait), kLong, 62, true},
        {"behind a RST that may be forged", Protocol::Tcp, tcp(TcpState::RstForward), kLong, 59, false},
        {"unanswered", Protocol::Udp, 0, 4, 4, false},
        {"unanswered, and given up by its client", Protocol::Udp, 0, 7, 7, true},
        {"answered a moment ago", Protocol::Udp, 1, 5, 4, false},
        {"answered, and over", Protocol::Udp, 1, 8, 7, true},
    };
    for (const auto& c : cases) {
        const TscTime now{kLong * 2 * rate.hz};
        const auto ago = [&](uint64_t seconds) { return clock.at({now.value - seconds * rate.hz}); };
        Entry entry{};
        entry.protocol = c.protocol;
        entry.state = c.state;
        entry.opened_at = ago(c.opened_ago_s);
        entry.last_seen = ago(c.seen_ago_s);
        entry.tags = {1'000, 0};
        const Worth worth = worth_of(entry);
        ASSERT_NE(worth, Worth::Keep) << c.name;
        const TcpProgress lower{.seq = 999}, higher{.seq = 1'001};
        const bool is_tcp = c.protocol == Protocol::Tcp;
        EXPECT_EQ(rest.is_over(entry, worth, clock.at(now), is_tcp ? &lower : nullptr), c.is_over) << c.name;
        const bool is_time_wait = is_tcp && entry.tcp_state() == TcpState::TimeWait;
        EXPECT_EQ(rest.is_over(entry, worth, clock.at(now), is_tcp ? &higher : nullptr),
                  c.is_over || is_time_wait)
            << c.name;
    }
}

}  // namespace port_rest_test
}  // namespace penstock::conn
