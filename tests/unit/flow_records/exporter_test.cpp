// SPDX-License-Identifier: Apache-2.0
// The thread: from records to a file and to a collector on the loopback interface, with faults of both.
#include "control/flow_records/exporter.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <deque>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <mutex>

#include "control/base/descriptor.hpp"
#include "tests/support/log_capture.hpp"
#include "tests/support/patience.hpp"
#include "tests/support/scratch_folder.hpp"
#include "tests/unit/flow_records/events.hpp"

namespace penstock::flow_records {
namespace exporter_test {

using Kind = pipeline::FlowRecord::Event;

// A UDP socket on 127.0.0.1.
class Receiver {
 public:
    Receiver() { bind_to(0); }
    void bind_to(uint16_t port) {
        socket_ = Descriptor(::socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        address.sin_port = htons(port);
        ASSERT_EQ(::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
        socklen_t length = sizeof address;
        ASSERT_EQ(::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&address), &length), 0);
        port_ = ntohs(address.sin_port);
    }
    void close() { socket_ = Descriptor(); }
    [[nodiscard]] SocketAddress address() const { return {IpAddr::v4(127, 0, 0, 1), port_}; }
    // The id of the first set of the next message; 0: there is none.
    uint16_t next_set() {
        std::array<uint8_t, 2'048> bytes{};
        const ssize_t length = ::recv(socket_.get(), bytes.data(), bytes.size(), 0);
        return length < 20 ? uint16_t{0} : static_cast<uint16_t>(bytes[16] << 8 | bytes[17]);
    }
    // Waits for a message with this set.
    [[nodiscard]] bool receives(uint16_t set) {
        return test::comes_true([&] {
            for (uint16_t next = next_set(); next != 0; next = next_set()) {
                if (next == set) {
                    return true;
                }
            }
            return false;
        });
    }

 private:
    Descriptor socket_;
    uint16_t port_ = 0;
};

class ExporterTest : public testing::Test {
 protected:
    Exporter::Options options() {
        return {.origin = kOrigin,
                .take =
                    [this](std::span<pipeline::TimedFlowRecord> out) {
                        const std::lock_guard lock(mutex_);
                        size_t taken = 0;
                        for (; taken < out.size() && !records_.empty(); records_.pop_front()) {
                            out[taken++] = records_.front();
                        }
                        return taken;
                    },
                .name =
                    [this](std::span<const ServiceId> ids) {
                        resolved_ += ids.size();
                        return std::vector<ServiceFacts>(ids.size(), web());
                    }};
    }
    void put(size_t count, Kind event = Kind::Begin) {
        const std::lock_guard lock(mutex_);
        records_.insert(records_.end(), count, flow(event));
    }
    [[nodiscard]] size_t lines() const {
        std::ifstream file(folder_.path() / "log/default/flows.jsonl", std::ios::binary);
        return static_cast<size_t>(std::count(std::istreambuf_iterator<char>(file), {}, '\n'));
    }
    [[nodiscard]] std::string log_folder() const { return (folder_.path() / "log").string(); }

    test::ScratchFolder folder_;
    std::mutex mutex_;
    std::deque<pipeline::TimedFlowRecord> records_;
    std::atomic<size_t> resolved_{0};
};

TEST_F(ExporterTest, WritesFilesAndMessages) {
    Receiver receiver;
    Exporter::Options with = options();
    with.folder = log_folder();
    with.collector = receiver.address();
    put(3'000);
    Exporter exporter(with);
    EXPECT_TRUE(receiver.receives(2)) << "templates come first";
    EXPECT_TRUE(receiver.receives(256));
    EXPECT_TRUE(test::comes_true([&] { return exporter.counts().logged == 3'000; }));
    put(1, Kind::End);
    EXPECT_TRUE(receiver.receives(260));
    exporter.stop();
    EXPECT_EQ(exporter.counts().logged, 3'001U);
    EXPECT_EQ(exporter.counts().sent, 3'001U);
    EXPECT_EQ(exporter.counts().lost, (std::array<uint64_t, kLosses>{}));
    EXPECT_EQ(exporter.fault(), "");
    EXPECT_EQ(lines(), 3'001U);
    EXPECT_LT(resolved_, 100U) << "a name is used for a second";
}

TEST_F(ExporterTest, WhatIsQueuedIsWrittenAtTheStop) {
    Exporter::Options with = options();
    with.folder = log_folder();
    Exporter exporter(with);
    put(5'000);
    exporter.stop();
    EXPECT_EQ(lines(), 5'000U);
}

TEST_F(ExporterTest, AFullDiskLosesRecordsUntilThereIsRoom) {
    test::LogCapture log("control");
    folder_.write("log", "a file, where a folder is needed");
    Exporter::Options with = options();
    with.folder = log_folder();
    Exporter exporter(with);
    put(10);
    EXPECT_TRUE(test::comes_true([&] { return exporter.counts().lost[size_t(Loss::Disk)] == 10; }));
    EXPECT_NE(exporter.fault().find("log"), std::string::npos) << exporter.fault();
    std::filesystem::remove(folder_.path() / "log");
    put(7);
    EXPECT_TRUE(test::comes_true([&] { return exporter.counts().logged == 7; }));
    EXPECT_EQ(exporter.fault(), "");
    exporter.stop();
    EXPECT_EQ(lines(), 7U);
    EXPECT_EQ(log.count("flow records are lost: "), 1U);
    EXPECT_EQ(log.count("flow records are written again"), 1U);
}

// A collector that is away: Linux reports the ICMP error of one message with the next one.
TEST_F(ExporterTest, ACollectorThatIsAwayLosesRecordsAndGetsTemplatesWhenItIsBack) {
    test::LogCapture log("control");
    Receiver receiver;
    const SocketAddress address = receiver.address();
    receiver.close();
    Exporter::Options with = options();
    with.collector = address;
    Exporter exporter(with);
    EXPECT_TRUE(test::comes_true([&] {
        put(1);
        return exporter.counts().lost[size_t(Loss::Collector)] > 0;
    }));
    EXPECT_NE(exporter.fault().find("does not accept messages"), std::string::npos) << exporter.fault();
    receiver.bind_to(address.port);
    EXPECT_TRUE(test::comes_true([&] {
        put(1);
        return receiver.next_set() == 256;
    }));
    // A message that follows no refusal ends the fault.
    EXPECT_TRUE(test::comes_true([&] {
        put(1);
        return exporter.fault().empty();
    }));
    exporter.stop();
}

TEST_F(ExporterTest, WithoutARouteRecordsAreLostAndFilesAreWritten) {
    test::LogCapture log("control");
    Exporter::Options with = options();
    with.folder = log_folder();
    // Refused by Linux for a socket without SO_BROADCAST, whatever the routes of this machine are.
    with.collector = SocketAddress{IpAddr::v4(255, 255, 255, 255), 4739};
    Exporter exporter(with);
    put(5);
    EXPECT_TRUE(test::comes_true([&] {
        return exporter.counts().logged == 5 && exporter.counts().lost[size_t(Loss::Collector)] == 5;
    }));
    EXPECT_NE(exporter.fault().find("255.255.255.255:4739"), std::string::npos) << exporter.fault();
    exporter.stop();
    EXPECT_EQ(log.count("flow records are lost: "), 1U);
}

TEST_F(ExporterTest, ReopensItsFiles) {
    Exporter::Options with = options();
    with.folder = log_folder();
    Exporter exporter(with);
    put(1);
    EXPECT_TRUE(test::comes_true([&] { return exporter.counts().logged == 1; }));
    const auto file = folder_.path() / "log/default/flows.jsonl";
    std::filesystem::rename(file, folder_.path() / "moved");
    exporter.reopen();
    put(2);
    EXPECT_TRUE(test::comes_true([&] { return exporter.counts().logged == 3; }));
    exporter.stop();
    EXPECT_EQ(lines(), 2U);
}

}  // namespace exporter_test
}  // namespace penstock::flow_records
