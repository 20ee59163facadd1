// SPDX-License-Identifier: Apache-2.0
// The records of a table file: what is written is read, and nothing else is.
#include "control/gateway/tables/id_names.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

namespace penstock::gateway {
namespace id_names_test {

NamedService web() {
    return {.key = {"default", "web", "http", Protocol::Udp},
            .uid = "6cf8d0a2-6d1b-4d92-9e0b-0f5f2f6a5c11",
            .affinity_owner = AffinityOwner{7},
            .affinity_epoch = 3};
}

NamedEndpoint pod(const IpAddr& address) {
    return {.service = ServiceId{7}, .endpoint = EndpointId{11}, .stay = 2, .port = 8080, .address = address};
}

TEST(IdNames, AServiceIsReadAsItWasWritten) {
    const auto record = record_of(ServiceId{7}, web());
    ASSERT_TRUE(record);
    EXPECT_EQ(read_record(ServiceId{7}, *record), web());
}

TEST(IdNames, AServiceWithoutAffinityUidAndPortNameIsReadAsItWasWritten) {
    const NamedService plain{.key = {"default", "web", "", Protocol::Sctp}, .uid = {}, .affinity_owner = {}};
    EXPECT_EQ(read_record(ServiceId{0}, *record_of(ServiceId{0}, plain)), plain);
}

TEST(IdNames, TheLongestNamesOfKubernetesHaveRoom) {
    NamedService service = web();
    service.key = {std::string(63, 'n'), std::string(63, 's'), std::string(63, 'p'), Protocol::Tcp};
    const auto record = record_of(ServiceId{65'535}, service);
    ASSERT_TRUE(record);
    EXPECT_EQ(read_record(ServiceId{65'535}, *record), service);
}

TEST(IdNames, NamesThatDoNotFitHaveNoRecord) {
    NamedService service = web();
    service.key.name = std::string(239, 's');
    EXPECT_FALSE(record_of(ServiceId{7}, service));
}

TEST(IdNames, EndpointsOfBothFamiliesAreReadAsTheyWereWritten) {
    for (const char* text : {"10.0.0.7", "2001:db8::7", "0.0.0.0"}) {
        const NamedEndpoint endpoint = pod(*IpAddr::parse(text));
        EXPECT_EQ(read_record(BackendId{9}, record_of(BackendId{9}, endpoint)), endpoint) << text;
    }
}

TEST(IdNames, ARecordCountsOnlyAtItsPosition) {
    EXPECT_FALSE(read_record(ServiceId{8}, *record_of(ServiceId{7}, web())));
    EXPECT_FALSE(read_record(BackendId{8}, record_of(BackendId{9}, pod(IpAddr::v4(10, 0, 0, 7)))));
}

TEST(IdNames, ARecordThatWasNeverWrittenIsNone) {
    for (uint32_t at : {0U, 1U, 1000U}) {
        EXPECT_FALSE(read_record(ServiceId{at}, ServiceRecord{}));
        EXPECT_FALSE(read_record(BackendId{at}, EndpointRecord{}));
    }
}

// As a process leaves it that ends while it writes.
template <typename Id, typename Record>
void expect_no_half(Id at, const Record& before, const Record& after) {
    for (size_t bytes = 4; bytes < sizeof(Record); bytes += 4) {
        Record torn = before;
        std::memcpy(&torn, &after, bytes);
        if (std::memcmp(&torn, &before, sizeof(Record)) != 0 &&
            std::memcmp(&torn, &after, sizeof(Record)) != 0) {
            EXPECT_FALSE(read_record(at, torn)) << bytes << " bytes are new";
        }
    }
}

TEST(IdNames, ARecordOfWhichOnlyAPartWasWrittenIsNone) {
    NamedService other = web();
    other.key.name = "another";
    other.uid = "f51d5f34-1c5c-4f4b-a0b8-6a7d6b6f1e22";
    expect_no_half(ServiceId{7}, *record_of(ServiceId{7}, web()), *record_of(ServiceId{7}, other));
    expect_no_half(ServiceId{7}, ServiceRecord{}, *record_of(ServiceId{7}, web()));
    expect_no_half(BackendId{9}, record_of(BackendId{9}, pod(IpAddr::v4(10, 0, 0, 7))),
                   record_of(BackendId{9}, pod(IpAddr::v4(10, 0, 0, 8))));
}

TEST(IdNames, ARecordWithAChangedByteIsNone) {
    const ServiceRecord record = *record_of(ServiceId{7}, web());
    for (size_t i = 0; i < sizeof(record); ++i) {
        ServiceRecord damaged = record;
        reinterpret_cast<uint8_t*>(&damaged)[i] ^= 0x10;
        EXPECT_FALSE(read_record(ServiceId{7}, damaged)) << "byte " << i;
    }
}

}  // namespace id_names_test
}  // namespace penstock::gateway
