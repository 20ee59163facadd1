// SPDX-License-Identifier: Apache-2.0
#include "dataplane/copies/record.hpp"

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "dataplane/base/bytes.hpp"

namespace penstock::copies {
namespace record_test {

using conn::Connection;

constexpr CoarseClock kClock{TscRate{2'100'000'000}};
constexpr CoarseTime kNow{5000};

Connection of_ipv4() {
    Connection connection;
    connection.forward = {IpAddr::v4(192, 0, 2, 7), IpAddr::v4(80, 11, 12, 10), 40'001, 443};
    connection.reverse = {IpAddr::v4(10, 2, 0, 7), IpAddr::v4(198, 51, 100, 1), 8443, 33'000};
    connection.state = static_cast<uint8_t>(conn::TcpState::Established);
    connection.opened_at = {kNow.value - 900};
    connection.last_seen = {kNow.value - 33};
    connection.tags = {0x01020304, 0xf0e0d0c0};
    return connection;
}
Connection of_ipv6() {
    Connection connection = of_ipv4();
    connection.forward.source = *IpAddr::parse("2001:db8::7");
    connection.forward.destination = *IpAddr::parse("2001:db8:80::10");
    connection.reverse.source = *IpAddr::parse("2001:db8:2::7");
    connection.reverse.destination = *IpAddr::parse("2001:db8:1::1");
    return connection;
}
Connection of_both_families() {
    Connection connection = of_ipv6();
    connection.reverse.source = IpAddr::v4(10, 2, 0, 7);
    connection.reverse.destination = IpAddr::v4(198, 51, 100, 1);
    return connection;
}
Connection with_kept_source() {
    Connection connection = of_ipv4();
    connection.source_kept = true;
    connection.reverse.destination = connection.forward.source;
    return connection;
}
Connection of_protocol(Protocol protocol, uint8_t state) {
    Connection connection = of_ipv4();
    connection.forward.protocol = connection.reverse.protocol = protocol;
    connection.state = state;
    return connection;
}

std::vector<std::byte> held(const Connection& connection, uint32_t slot = 9) {
    std::vector<std::byte> batch;
    append_held(batch, slot, connection, kNow, kClock);
    return batch;
}

void expect_same(const Connection& copy, const Connection& connection) {
    EXPECT_TRUE(copy.forward == connection.forward) << copy.forward.to_string();
    EXPECT_TRUE(copy.reverse == connection.reverse) << copy.reverse.to_string();
    EXPECT_EQ(copy.opened_at.value, connection.opened_at.value);
    EXPECT_EQ(copy.last_seen.value, connection.last_seen.value);
    EXPECT_EQ(copy.state, connection.state);
    EXPECT_EQ(copy.source_kept, connection.source_kept);
    EXPECT_EQ(copy.tags, connection.tags);
}

TEST(CopyRecord, Held_EachKindOfConnection_ReturnsAsItWasSent) {
    struct Case {
        std::string name;
        Connection connection;
        size_t bytes;
    };
    const std::vector<Case> cases{
        {"IPv4", of_ipv4(), kHeldV4Bytes},
        {"IPv6", of_ipv6(), kHeldV6Bytes},
        {"between families", of_both_families(), kHeldV6Bytes},
        {"kept source", with_kept_source(), kHeldV4Bytes},
        {"UDP", of_protocol(Protocol::Udp, 1), kHeldV4Bytes},
        {"SCTP", of_protocol(Protocol::Sctp, conn::kSctpStates - 1), kHeldV4Bytes},
        {"last state of TCP", of_protocol(Protocol::Tcp, conn::kTcpStates - 1), kHeldV4Bytes},
    };
    for (const Case& c : cases) {
        SCOPED_TRACE(c.name);
        const std::vector<std::byte> batch = held(c.connection, 0x8000'0001);
        EXPECT_EQ(batch.size(), c.bytes);
        const auto records = decode(batch, kNow, kClock);
        ASSERT_TRUE(records) << records.error().what;
        ASSERT_EQ(records->size(), 1u);
        EXPECT_EQ(records->front().kind, Record::Kind::Held);
        EXPECT_EQ(records->front().slot, 0x8000'0001);
        expect_same(records->front().connection, c.connection);
    }
}

TEST(CopyRecord, Held_FieldsOfThisGateway_AreNotSent) {
    Connection connection = of_ipv4();
    connection.service = {1};
    connection.backend = {2};
    connection.snat_pool = 3;
    connection.snat_index = 4;
    connection.is_pinned = true;
    const auto records = decode(held(connection), kNow, kClock);
    ASSERT_TRUE(records);
    const Connection& copy = records->front().connection;
    EXPECT_FALSE(copy.service.is_set());
    EXPECT_FALSE(copy.backend.is_set());
    EXPECT_EQ(copy.snat_pool, 0u);
    EXPECT_EQ(copy.snat_index, 0u);
    EXPECT_FALSE(copy.is_pinned);
}

// The layout by value: a gateway of another release must agree.
TEST(CopyRecord, Layout_IsFixed) {
    const std::array<uint8_t, kHeldV4Bytes> expected{
        2,    9,    0,    0,    0,                       // kind, slot
        6,    3,    0,                                   // TCP, established, source not kept
        0x3c, 0x0b, 0,    0,    0x69, 0,    0,    0,     // 28.76 s, 1.05 s: 900 and 33 units of 2^26 ticks
        0x04, 0x03, 0x02, 0x01, 0xc0, 0xd0, 0xe0, 0xf0,  // tags
        0x41, 0x9c, 0xbb, 0x01, 0xfb, 0x20, 0xe8, 0x80,  // ports
        192,  0,    2,    7,    80,   11,   12,   10,    // addresses
        10,   2,    0,    7,    198,  51,   100,  1,
    };
    Connection connection = of_ipv4();
    const std::vector<std::byte> batch = held(connection);
    ASSERT_EQ(batch.size(), expected.size());
    for (size_t i = 0; i < batch.size(); ++i) {
        EXPECT_EQ(static_cast<uint8_t>(batch[i]), expected[i]) << "byte " << i;
    }
    std::vector<std::byte> ended;
    append_ended(ended, 0x04030201);
    EXPECT_EQ(ended,
              (std::vector<std::byte>{std::byte{1}, std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}}));
}

TEST(CopyRecord, Times_OfClocksOfDifferentRates_KeepTheirLength) {
    constexpr CoarseClock kFast{TscRate{3'800'000'000}}, kSlow{TscRate{1'000'000'000}};
    constexpr CoarseTime kElsewhere{77};  // an age may reach back before the origin
    Connection connection = of_ipv4();
    std::vector<std::byte> batch;
    append_held(batch, 1, connection, kNow, kFast);
    const auto records = decode(batch, kElsewhere, kSlow);
    ASSERT_TRUE(records);
    const Connection& copy = records->front().connection;
    const auto sent_ms = static_cast<double>(kFast.to_milliseconds(900));
    const auto received_ms =
        static_cast<double>(kSlow.to_milliseconds(units_between(copy.opened_at, kElsewhere)));
    EXPECT_NEAR(received_ms, sent_ms, 70);  // one unit, and 10 ms
    EXPECT_GE(units_between(copy.opened_at, copy.last_seen), 0);
}

TEST(CopyRecord, Times_AheadOfNow_AreSentAsNow) {
    Connection connection = of_ipv4();
    connection.opened_at = {kNow.value + 3};
    connection.last_seen = {kNow.value + 2};
    const auto records = decode(held(connection), kNow, kClock);
    ASSERT_TRUE(records) << records.error().what;
    EXPECT_EQ(records->front().connection.opened_at, kNow);
    EXPECT_EQ(records->front().connection.last_seen, kNow);
}

TEST(CopyRecord, Times_LastSeenBeforeOpened_IsSentAsOpened) {
    Connection connection = of_ipv4();
    connection.last_seen = {connection.opened_at.value - 1};
    const auto records = decode(held(connection), kNow, kClock);
    ASSERT_TRUE(records) << records.error().what;
    EXPECT_EQ(records->front().connection.last_seen, connection.opened_at);
}

TEST(CopyRecord, Batch_OfSeveralRecords_KeepsTheirOrder) {
    std::vector<std::byte> batch = held(of_ipv4(), 1);
    append_ended(batch, 2);
    append_held(batch, 3, of_ipv6(), kNow, kClock);
    append_held(batch, 3, of_both_families(), kNow, kClock);
    append_ended(batch, 1);
    const auto records = decode(batch, kNow, kClock);
    ASSERT_TRUE(records) << records.error().what;
    using enum Record::Kind;
    const std::vector<std::pair<Record::Kind, uint32_t>> expected{
        {Held, 1}, {Ended, 2}, {Held, 3}, {Held, 3}, {Ended, 1}};
    ASSERT_EQ(records->size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
        EXPECT_EQ((*records)[i].kind, expected[i].first) << i;
        EXPECT_EQ((*records)[i].slot, expected[i].second) << i;
    }
    expect_same((*records)[2].connection, of_ipv6());
    expect_same((*records)[3].connection, of_both_families());
    EXPECT_TRUE(decode({}, kNow, kClock)->empty());
}

TEST(CopyRecord, Batch_CutAnywhere_IsRefused) {
    std::vector<std::byte> batch;
    append_ended(batch, 1);
    append_held(batch, 2, of_ipv4(), kNow, kClock);
    append_held(batch, 3, of_ipv6(), kNow, kClock);
    const std::span<const std::byte> all(batch);
    for (size_t bytes = 1; bytes < batch.size(); ++bytes) {
        const bool is_whole = bytes == kEndedBytes || bytes == kEndedBytes + kHeldV4Bytes;
        const auto records = decode(all.first(bytes), kNow, kClock);
        EXPECT_EQ(records.has_value(), is_whole) << bytes;
        if (!records) {
            EXPECT_EQ(records.error().code, Errc::InvalidArgument);
            EXPECT_TRUE(records.error().what.ends_with("the batch ends within the record"));
        }
    }
}

TEST(CopyRecord, Batch_OverTheLimit_IsRefused) {
    std::vector<std::byte> batch;
    while (batch.size() + kEndedBytes <= kBatchBytesMax) {
        append_ended(batch, 1);
    }
    EXPECT_TRUE(decode(batch, kNow, kClock));
    append_ended(batch, 1);
    const auto records = decode(batch, kNow, kClock);
    ASSERT_FALSE(records);
    EXPECT_EQ(records.error().what, "batch of 262145 bytes: at most 262144");
}

// Each changes one field of a valid record, which stands behind another record.
TEST(CopyRecord, Held_OfNoGateway_IsRefusedWithItsPositionAndRule) {
    struct Case {
        std::string name;
        Connection connection;
        std::function<void(std::span<std::byte>)> change;
        std::string rule;
    };
    const auto byte = [](size_t at, uint8_t value) {
        return [=](std::span<std::byte> record) { record[at] = std::byte{value}; };
    };
    const auto v4_address = [](size_t which, std::array<uint8_t, 4> address) {
        return [=](std::span<std::byte> record) { store(&record[32 + which * 4], address); };
    };
    const auto v6_address = [](size_t which, const char* address) {
        return [=](std::span<std::byte> record) {
            store(&record[32 + which * 16], IpAddr::parse(address)->bytes());
        };
    };
    const auto port = [](size_t which) {
        return [=](std::span<std::byte> record) { store(&record[24 + which * 2], uint16_t{0}); };
    };
    const std::string of_state = "a connection is of TCP, UDP or SCTP and has a state of its protocol";
    const std::string of_family = "source and destination of a key are of one family";
    const std::string of_host = "addresses are different unicast addresses of hosts";
    const std::string of_port = "a port is not 0";
    const std::vector<Case> cases{
        {"kind 0", of_ipv4(), byte(0, 0), "unknown kind 0"},
        {"kind 4", of_ipv4(), byte(0, 4), "unknown kind 4"},
        {"protocol", of_ipv4(), byte(5, 1), of_state},
        {"state of TCP", of_ipv4(), byte(6, conn::kTcpStates), of_state},
        {"state of UDP", of_protocol(Protocol::Udp, 0), byte(6, 2), of_state},
        {"state of SCTP", of_protocol(Protocol::Sctp, 0), byte(6, conn::kSctpStates), of_state},
        {"flags", of_ipv4(), byte(7, 2), "unknown flags 2"},
        {"idle", of_ipv4(), byte(14, 1), "a connection is not idle for longer than it is open"},
        {"client's port", of_ipv4(), port(0), of_port},
        {"frontend's port", of_ipv4(), port(1), of_port},
        {"endpoint's port", of_ipv4(), port(2), of_port},
        {"SNAT port", of_ipv4(), port(3), of_port},
        {"client of no address", of_ipv4(), v4_address(0, {0, 0, 0, 0}), of_host},
        {"client of this network", of_ipv4(), v4_address(0, {0, 1, 2, 3}), of_host},
        {"client by multicast", of_ipv4(), v4_address(0, {224, 0, 0, 1}), of_host},
        {"frontend of loopback", of_ipv4(), v4_address(1, {127, 0, 0, 1}), of_host},
        {"frontend reserved", of_ipv4(), v4_address(1, {255, 255, 255, 255}), of_host},
        {"endpoint of loopback", of_ipv4(), v4_address(2, {127, 1, 2, 3}), of_host},
        {"SNAT address of multicast", of_ipv4(), v4_address(3, {239, 0, 0, 1}), of_host},
        {"client is the frontend", of_ipv4(), v4_address(0, {80, 11, 12, 10}), of_host},
        {"IPv6 of no address", of_ipv6(), v6_address(0, "::"), of_host},
        {"IPv6 multicast", of_ipv6(), v6_address(3, "ff02::1"), of_host},
        {"IPv6 loopback", of_ipv6(), v6_address(1, "::1"), of_host},
        {"forward key of two families", of_both_families(),
         [](auto record) { store(&record[32], IpAddr::v4(10, 0, 0, 1).bytes()); }, of_family},
        {"reverse key of two families", of_both_families(), v6_address(2, "2001:db8::1"), of_family},
        {"IPv4 in the kind of IPv6", of_both_families(),
         [](auto record) {
             store(&record[32], IpAddr::v4(10, 0, 0, 1).bytes());
             store(&record[48], IpAddr::v4(10, 0, 0, 2).bytes());
         },
         "a connection of IPv4 alone is of kind 2"},
        {"kept source of another", with_kept_source(), v4_address(3, {198, 51, 100, 1}),
         "a kept source is the client's address"},
        {"kept source between families", of_both_families(), byte(7, 1),
         "a kept source is the client's address"},
        {"equal keys", of_ipv4(),
         [](auto record) {
             std::copy_n(&record[24], 4, &record[28]);
             std::copy_n(&record[32], 8, &record[40]);
         },
         "the two keys of a connection differ"},
    };
    for (const Case& c : cases) {
        SCOPED_TRACE(c.name);
        std::vector<std::byte> batch;
        append_ended(batch, 1);
        append_held(batch, 2, c.connection, kNow, kClock);
        ASSERT_TRUE(decode(batch, kNow, kClock));
        c.change(std::span(batch).subspan(kEndedBytes));
        const auto records = decode(batch, kNow, kClock);
        ASSERT_FALSE(records);
        EXPECT_EQ(records.error().code, Errc::InvalidArgument);
        EXPECT_EQ(records.error().what, "record at byte 5 of a batch: " + c.rule);
    }
}

}  // namespace record_test
}  // namespace penstock::copies
