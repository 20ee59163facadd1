// SPDX-License-Identifier: Apache-2.0
// Reports of penstock-sync to its service manager, as datagrams that a test receives.
#include "control/sync/service_watch.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>

#include "control/base/descriptor.hpp"
#include "control/sync/pages.hpp"
#include "tests/support/scratch_folder.hpp"
#include "tests/unit/sync/sync_reading.hpp"

namespace penstock::sync {
namespace service_watch_test {

using namespace std::chrono_literals;

SyncReading listed_reading() {
    SyncReading reading = test::example_reading();
    for (auto& collection : reading.source.collections) {
        collection.listed = true;
    }
    return reading;
}

TEST(ServiceFacts, TheStatusHasTheSourceAndTheGateways) {
    SyncReading reading = listed_reading();
    EXPECT_EQ(service_facts(reading).status, "follows https://192.0.2.1:6443; 1 of 2 gateways connected");
    EXPECT_EQ(service_facts(reading).waits_for, "");
    reading.source.collections[1].listed = false;
    EXPECT_EQ(
        service_facts(reading).status,
        "waits for https://192.0.2.1:6443: endpointslices: no complete list yet: connection refused; 1 of 2 "
        "gateways connected");
    reading.source.collections[1].optional = true;
    EXPECT_EQ(service_facts(reading).status, "follows https://192.0.2.1:6443; 1 of 2 gateways connected");
    reading.source.trouble = "the folder is empty";
    EXPECT_EQ(service_facts(reading).status,
              "waits for https://192.0.2.1:6443: the folder is empty; 1 of 2 gateways connected");
    reading.source.trouble.clear();
    reading.source.collections.clear();
    EXPECT_EQ(service_facts(reading).status,
              "waits for https://192.0.2.1:6443: no collection is watched yet; 1 of 2 gateways connected");
    EXPECT_EQ(service_facts(reading).waits_for, "") << "a start does not depend on the API server";
}

TEST(ServiceFacts, EachThreadMustGoRound) {
    SyncReading reading = listed_reading();
    EXPECT_TRUE(service_facts(reading).goes_round);
    reading.source.heartbeat_age = kStuckAfter;
    EXPECT_FALSE(service_facts(reading).goes_round);
    reading.source.heartbeat_age = kStuckAfter - 1ms;
    EXPECT_TRUE(service_facts(reading).goes_round);
    reading.gateways[1].heartbeat_age = kStuckAfter;
    EXPECT_FALSE(service_facts(reading).goes_round);
}

TEST(ServiceWatch, ReportsReadyAndFeedsTheWatchdogUntilAThreadIsStuck) {
    const penstock::test::ScratchFolder folder;
    const std::string path = folder.path() / "notify";
    const Descriptor socket(::socket(AF_UNIX, SOCK_DGRAM, 0));
    sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
    ASSERT_LT(path.size(), sizeof(address.sun_path));
    std::memcpy(address.sun_path, path.data(), path.size());
    ASSERT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
    const auto next = [&] {
        std::array<char, 4096> text{};
        const ssize_t length = ::recv(socket.get(), text.data(), text.size(), 0);
        return std::string(text.data(), length > 0 ? static_cast<size_t>(length) : 0);
    };

    ::setenv("NOTIFY_SOCKET", path.c_str(), 1);
    ::setenv("WATCHDOG_USEC", "80000", 1);
    const auto manager = process::ServiceManager::from_environment();
    ASSERT_EQ(manager.watchdog(), 80ms);
    std::atomic<bool> is_stuck{false};
    std::atomic<int> looks{0};
    const ServiceWatch watch(manager, [&] {
        SyncReading reading = listed_reading();
        if (is_stuck) {
            ++looks;
            reading.source.heartbeat_age = kStuckAfter;
            reading.source.source = "stuck";
        }
        return reading;
    });
    EXPECT_EQ(next(),
              "READY=1\nSTATUS=follows https://192.0.2.1:6443; 1 of 2 gateways connected\nWATCHDOG=1");
    EXPECT_EQ(next(), "WATCHDOG=1");
    EXPECT_EQ(next(), "WATCHDOG=1");
    is_stuck = true;
    // Reports of before may be in the queue. The next one is that of the first look while it is stuck, and
    // has no keep-alive; the last one is the status after many such looks.
    std::string report = next();
    while (report == "WATCHDOG=1") {
        report = next();
    }
    EXPECT_EQ(report, "STATUS=follows stuck; 1 of 2 gateways connected");
    for (int seen = looks; looks < seen + 10;) {
        std::this_thread::sleep_for(1ms);
    }
    is_stuck = false;
    EXPECT_EQ(next(), "STATUS=follows https://192.0.2.1:6443; 1 of 2 gateways connected\nWATCHDOG=1");
}

}  // namespace service_watch_test
}  // namespace penstock::sync
