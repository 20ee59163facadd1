// SPDX-License-Identifier: Apache-2.0
// Messages as a collector reads them: a decoder of RFC 7011, written from the RFC, learns the templates and
// returns the values by the names of the IANA registry.
#include "control/flow_records/ipfix.hpp"

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "tests/unit/flow_records/events.hpp"

namespace penstock::flow_records {
namespace ipfix_test {

using Kind = pipeline::FlowRecord::Event;
using Values = std::map<std::string, std::string>;

// Names by number; "reverse" in front for the enterprise of RFC 5103.
const std::map<uint16_t, std::string> kNames{{1, "octetDeltaCount"},
                                             {2, "packetDeltaCount"},
                                             {4, "protocolIdentifier"},
                                             {7, "sourceTransportPort"},
                                             {8, "sourceIPv4Address"},
                                             {11, "destinationTransportPort"},
                                             {12, "destinationIPv4Address"},
                                             {27, "sourceIPv6Address"},
                                             {28, "destinationIPv6Address"},
                                             {96, "applicationName"},
                                             {136, "flowEndReason"},
                                             {148, "flowId"},
                                             {152, "flowStartMilliseconds"},
                                             {153, "flowEndMilliseconds"},
                                             {225, "postNATSourceIPv4Address"},
                                             {226, "postNATDestinationIPv4Address"},
                                             {227, "postNAPTSourceTransportPort"},
                                             {228, "postNAPTDestinationTransportPort"},
                                             {230, "natEvent"},
                                             {281, "postNATSourceIPv6Address"},
                                             {282, "postNATDestinationIPv6Address"},
                                             {323, "observationTimeMilliseconds"}};

class Decoder {
 public:
    struct Header {
        uint16_t version = 0, length = 0;
        uint32_t export_s = 0, sequence = 0, domain = 0;
    };

    // Adds the records of a message; a template must precede its records.
    Header read(const Message& message) {
        at_ = message;
        Header header;
        header.version = static_cast<uint16_t>(number(2));
        header.length = static_cast<uint16_t>(number(2));
        header.export_s = static_cast<uint32_t>(number(4));
        header.sequence = static_cast<uint32_t>(number(4));
        header.domain = static_cast<uint32_t>(number(4));
        EXPECT_EQ(header.length, message.size());
        while (!at_.empty()) {
            const auto id = static_cast<uint16_t>(number(2));
            const auto length = static_cast<size_t>(number(2));
            if (length < 4 || length - 4 > at_.size()) {
                ADD_FAILURE() << "set " << id << " of length " << length;
                return header;
            }
            const std::span<const uint8_t> behind = at_.subspan(length - 4);
            at_ = at_.first(length - 4);
            while (!at_.empty()) {
                id == 2 ? read_template() : read_record(id);
            }
            at_ = behind;
        }
        return header;
    }
    std::vector<Values> records;
    std::map<uint16_t, std::vector<std::pair<std::string, size_t>>> templates;

 private:
    uint64_t number(size_t bytes) {
        uint64_t value = 0;
        for (; bytes > 0 && !at_.empty(); --bytes) {
            value = value << 8 | at_.front();
            at_ = at_.subspan(1);
        }
        EXPECT_EQ(bytes, 0U) << "the set ends within a value";
        return value;
    }
    void read_template() {
        auto& fields = templates[static_cast<uint16_t>(number(2))];
        fields.clear();
        for (uint64_t left = number(2); left > 0; --left) {
            const auto id = static_cast<uint16_t>(number(2));
            const auto length = static_cast<size_t>(number(2));
            std::string name = kNames.contains(id & 0x7fff) ? kNames.at(id & 0x7fff) : "unknown";
            if ((id & 0x8000) != 0) {
                EXPECT_EQ(number(4), 29'305U);
                name = "reverse " + name;
            }
            fields.emplace_back(name, length);
        }
    }
    void read_record(uint16_t id) {
        ASSERT_TRUE(templates.contains(id)) << id;
        Values values;
        for (const auto& [name, length] : templates.at(id)) {
            if (length == 65'535) {
                const auto bytes = static_cast<size_t>(number(1));
                ASSERT_LE(bytes, at_.size());
                values[name] = std::string(at_.begin(), at_.begin() + static_cast<ptrdiff_t>(bytes));
                at_ = at_.subspan(bytes);
            } else if (name.find("Address") != std::string::npos) {
                std::array<uint8_t, 16> bytes{};
                for (size_t i = 0; i < length; ++i) {
                    bytes[i] = static_cast<uint8_t>(number(1));
                }
                values[name] = length == 4 ? IpAddr::v4(bytes[0], bytes[1], bytes[2], bytes[3]).to_string()
                                           : IpAddr::v6(bytes).to_string();
            } else {
                values[name] = std::to_string(number(length));
            }
        }
        records.push_back(std::move(values));
    }
    std::span<const uint8_t> at_;
};

pipeline::TimedFlowRecord between(const char* client, const char* backend, Kind event) {
    pipeline::TimedFlowRecord timed = flow(event);
    timed.record.forward.source = *IpAddr::parse(client);
    timed.record.forward.destination =
        timed.record.forward.source.is_v4() ? kVip : *IpAddr::parse("2001:db8::10");
    timed.record.reverse.source = *IpAddr::parse(backend);
    timed.record.reverse.destination =
        timed.record.reverse.source.is_v4() ? kSnat : *IpAddr::parse("fd00::1");
    return timed;
}

TEST(Ipfix, HeaderAndFirstTemplateByteByByte) {
    const Message message = IpfixEncoder(0x01020304, 1'400).templates(0x69291a40);
    const std::vector<uint8_t> begin{0,
                                     10,  // version
                                     static_cast<uint8_t>(message.size() >> 8),
                                     static_cast<uint8_t>(message.size()),
                                     0x69,
                                     0x29,
                                     0x1a,
                                     0x40,  // export time
                                     0,
                                     0,
                                     0,
                                     0,  // sequence number
                                     1,
                                     2,
                                     3,
                                     4,  // observation domain
                                     0,
                                     2,  // set: templates
                                     static_cast<uint8_t>((message.size() - 16) >> 8),
                                     static_cast<uint8_t>(message.size() - 16),
                                     1,
                                     0,
                                     0,
                                     14,  // template 256 with 14 fields
                                     1,
                                     0x43,
                                     0,
                                     8,  // observationTimeMilliseconds
                                     0,
                                     230,
                                     0,
                                     1,  // natEvent
                                     0,
                                     4,
                                     0,
                                     1,  // protocolIdentifier
                                     0,
                                     148,
                                     0,
                                     8};  // flowId
    ASSERT_GT(message.size(), begin.size());
    EXPECT_EQ(Message(message.begin(), message.begin() + static_cast<ptrdiff_t>(begin.size())), begin);
}

TEST(Ipfix, RecordsOfAllFamiliesAndEventsHaveTheirTemplate) {
    IpfixEncoder encoder(7, 1'400);
    Decoder decoder;
    decoder.read(encoder.templates(1));
    EXPECT_EQ(decoder.templates.size(), 8U);
    struct Row {
        const char *client, *backend, *create, *remove;
        const char *version_before, *version_after;
    };
    const Row rows[] = {{"198.51.100.7", "10.0.0.42", "4", "5", "v4", "v4"},
                        {"2001:db8::7", "10.0.0.42", "6", "7", "v6", "v4"},
                        {"198.51.100.7", "fd00::42", "6", "7", "v4", "v6"},
                        {"2001:db8::7", "fd00::42", "1", "2", "v6", "v6"}};
    const ServiceFacts service = web();
    for (const Row& row : rows) {
        for (const Kind event : {Kind::Begin, Kind::End}) {
            const pipeline::TimedFlowRecord record = between(row.client, row.backend, event);
            decoder.records.clear();
            EXPECT_FALSE(encoder.add({record, service}, kOrigin, 1));
            const auto message = encoder.finish(1);
            ASSERT_TRUE(message);
            decoder.read(*message);
            ASSERT_EQ(decoder.records.size(), 1U);
            const Values& values = decoder.records[0];
            const std::string before =
                row.version_before == std::string("v4") ? "IPv4Address" : "IPv6Address";
            const std::string after = row.version_after == std::string("v4") ? "IPv4Address" : "IPv6Address";
            Values expected{
                {"observationTimeMilliseconds", std::to_string(record.at_ms)},
                {"natEvent", event == Kind::Begin ? row.create : row.remove},
                {"protocolIdentifier", "6"},
                {"flowId", std::to_string(uint64_t{2} << 56 | uint64_t{0x291a3c} << 32 | 0x01020305)},
                {"source" + before, row.client},
                {"destination" + before, record.record.forward.destination.to_string()},
                {"sourceTransportPort", "40000"},
                {"destinationTransportPort", "80"},
                {"postNATSource" + after, record.record.reverse.destination.to_string()},
                {"postNATDestination" + after, row.backend},
                {"postNAPTSourceTransportPort", "1025"},
                {"postNAPTDestinationTransportPort", "8080"},
                {"flowStartMilliseconds", std::to_string(kStartedMs)},
                {"applicationName", "default/web:http"}};
            if (event == Kind::End) {
                expected["flowEndMilliseconds"] = std::to_string(kStartedMs + 1'500);
                expected["flowEndReason"] = "3";
                expected["octetDeltaCount"] = "600";
                expected["packetDeltaCount"] = "5";
                expected["reverse octetDeltaCount"] = "8000000000";
                expected["reverse packetDeltaCount"] = "7";
            }
            EXPECT_EQ(values, expected);
        }
    }
}

TEST(Ipfix, ReasonsAreThoseOfTheRegistry) {
    const std::map<pipeline::FlowEnd, std::string> reasons{
        {pipeline::FlowEnd::Closed, "3"},  {pipeline::FlowEnd::Reset, "3"},
        {pipeline::FlowEnd::Idle, "1"},    {pipeline::FlowEnd::Unanswered, "1"},
        {pipeline::FlowEnd::Ended, "4"},   {pipeline::FlowEnd::Replaced, "4"},
        {pipeline::FlowEnd::Evicted, "5"}, {pipeline::FlowEnd::Reclaimed, "5"}};
    EXPECT_EQ(reasons.size(), pipeline::kFlowEnds);
    const ServiceFacts service = web();
    for (const auto& [end, expected] : reasons) {
        IpfixEncoder encoder(7, 1'400);
        Decoder decoder;
        decoder.read(encoder.templates(1));
        pipeline::TimedFlowRecord record = flow(Kind::End);
        record.record.end = end;
        EXPECT_FALSE(encoder.add({record, service}, kOrigin, 1));
        decoder.read(*encoder.finish(1));
        ASSERT_EQ(decoder.records.size(), 1U);
        EXPECT_EQ(decoder.records[0].at("flowEndReason"), expected);
    }
}

// RFC 7011, 3.1: the number of data records in all messages before; templates do not count.
TEST(Ipfix, MessagesAreFilledAndCountTheRecordsBefore) {
    constexpr size_t kBytes = 1'100;
    IpfixEncoder encoder(7, kBytes);
    Decoder decoder;
    EXPECT_FALSE(encoder.finish(1));
    decoder.read(encoder.templates(1));
    const ServiceFacts service = web();
    const pipeline::TimedFlowRecord begin = flow(), end = flow(Kind::End);
    uint32_t added = 0, messages = 0;
    const auto check = [&](const Message& message) {
        EXPECT_LE(message.size(), kBytes);
        const auto sent = static_cast<uint32_t>(decoder.records.size());
        const Decoder::Header header = decoder.read(message);
        EXPECT_EQ(header.version, 10);
        EXPECT_EQ(header.sequence, sent);
        EXPECT_EQ(header.domain, 7U);
        EXPECT_EQ(header.export_s, 42U);
        EXPECT_GT(decoder.records.size(), sent);
        ++messages;
    };
    for (; added < 100; ++added) {
        const bool is_end = added % 3 == 2;  // two records in a set, then another set
        if (const auto full = encoder.add({is_end ? end : begin, service}, kOrigin, 42)) {
            check(*full);
        }
        EXPECT_GE(encoder.records(), 1U);
    }
    if (const auto last = encoder.finish(42)) {
        check(*last);
    }
    EXPECT_EQ(decoder.records.size(), added);
    EXPECT_GT(messages, 5U);
    EXPECT_LT(messages, 20U);
    decoder.records.clear();
    EXPECT_EQ(decoder.read(encoder.templates(42)).sequence, added);
}

TEST(Ipfix, LongNamesAreCutAndUnknownOnesEmpty) {
    IpfixEncoder encoder(7, IpfixEncoder::kMessageBytesMin);
    Decoder decoder;
    decoder.read(encoder.templates(1));
    const ServiceFacts longest{.namespace_name = std::string(120, 'n'),
                               .name = std::string(120, 's'),
                               .port_name = std::string(63, 'p')};
    const ServiceFacts unknown;
    const pipeline::TimedFlowRecord record = between("2001:db8::7", "fd00::42", Kind::End);
    EXPECT_FALSE(encoder.add({record, longest}, kOrigin, 1));
    EXPECT_FALSE(encoder.add({record, unknown}, kOrigin, 1));
    decoder.read(*encoder.finish(1));
    ASSERT_EQ(decoder.records.size(), 2U);
    EXPECT_EQ(decoder.records[0].at("applicationName").size(), 254U);
    EXPECT_EQ(decoder.records[1].at("applicationName"), "");
}

}  // namespace ipfix_test
}  // namespace penstock::flow_records
