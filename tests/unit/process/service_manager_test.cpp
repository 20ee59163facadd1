// SPDX-License-Identifier: Apache-2.0
// The protocol of sd_notify(3) against a socket as systemd has one.
#include "control/process/service_manager.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>

#include "control/base/descriptor.hpp"
#include "control/process/sandbox.hpp"
#include "tests/unit/process/in_child.hpp"

namespace penstock::process {
namespace service_manager_test {

using namespace std::chrono_literals;

// The service manager's socket. `name` is a path, or "@" and an abstract name.
class Manager {
 public:
    explicit Manager(const std::string& name)
        : name_(name), fd_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0)) {
        sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
        std::memcpy(address.sun_path, name.data(), name.size());
        if (name[0] == '@') {
            address.sun_path[0] = '\0';
        } else {
            ::unlink(name.c_str());
        }
        const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
        EXPECT_EQ(::bind(fd_.get(), reinterpret_cast<const sockaddr*>(&address), length), 0)
            << std::strerror(errno);
    }
    // The next datagram; "" if there is none.
    std::string take() {
        std::array<char, 4096> text{};
        const ssize_t length = ::recv(fd_.get(), text.data(), text.size(), 0);
        return length < 0 ? "" : std::string(text.data(), static_cast<size_t>(length));
    }

 private:
    std::string name_;
    Descriptor fd_;
};

// The environment of a service. It is removed at the end.
struct Environment {
    Environment(const std::string& socket, const char* watchdog = nullptr, const char* process = nullptr) {
        ::setenv("NOTIFY_SOCKET", socket.c_str(), 1);
        if (watchdog != nullptr) {
            ::setenv("WATCHDOG_USEC", watchdog, 1);
        }
        if (process != nullptr) {
            ::setenv("WATCHDOG_PID", process, 1);
        }
    }
    ~Environment() {
        for (const char* name : {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"}) {
            ::unsetenv(name);
        }
    }
};

std::string unique_name(const std::string& prefix) {
    return prefix + "penstock-service-" + std::to_string(::getpid());
}

TEST(ServiceManager, SendsToAPathAndToAnAbstractName) {
    for (const std::string& name : {unique_name(testing::TempDir()), unique_name("@")}) {
        Manager manager(name);
        const Environment environment(name);
        const auto client = ServiceManager::from_environment();
        ASSERT_TRUE(client.is_present()) << name;
        EXPECT_TRUE(client.send("READY=1\nSTATUS=well"));
        EXPECT_EQ(manager.take(), "READY=1\nSTATUS=well") << name;
        EXPECT_EQ(manager.take(), "");
    }
    ::unlink(unique_name(testing::TempDir()).c_str());
}

TEST(ServiceManager, WithoutASocketNothingIsSent) {
    EXPECT_FALSE(ServiceManager::from_environment().is_present());
    EXPECT_TRUE(ServiceManager().send("READY=1"));
    const std::string kBad[] = {"", "/", "@", "relative", "vsock:2:1", "/" + std::string(107, 'x')};
    for (const std::string& name : kBad) {
        const Environment environment(name, "1000000");
        const auto client = ServiceManager::from_environment();
        EXPECT_FALSE(client.is_present()) << name;
        EXPECT_EQ(client.watchdog(), 0us) << name;
    }
    const Environment longest("/" + std::string(106, 'x'));
    EXPECT_TRUE(ServiceManager::from_environment().is_present());
}

TEST(ServiceManager, AReportThatNobodyReceivesIsNotSent) {
    const Environment environment(unique_name("@nobody-"));
    EXPECT_FALSE(ServiceManager::from_environment().send("READY=1"));
}

// A service manager that does not read must not stop a thread of the daemon.
TEST(ServiceManager, AFullQueueIsNotWaitedFor) {
    const std::string name = unique_name("@full-");
    Manager manager(name);
    const Environment environment(name);
    const auto client = ServiceManager::from_environment();
    int sent = 0;
    while (client.send("WATCHDOG=1")) {
        ASSERT_LT(++sent, 1'000'000);
    }
    EXPECT_GT(sent, 0);
    EXPECT_EQ(manager.take(), "WATCHDOG=1");
    EXPECT_TRUE(client.send("READY=1"));
}

TEST(ServiceManager, TheWatchdogIsForTheProcessThatIsNamed) {
    const std::string own = std::to_string(::getpid());
    const struct {
        const char* interval;
        const char* process;
        std::chrono::microseconds expected;
    } kCases[] = {{"30000000", own.c_str(), 30s}, {"30000000", nullptr, 30s}, {"30000000", "1", 0s},
                  {"30000000", "x", 0s},          {nullptr, own.c_str(), 0s}, {"-5", nullptr, 0s},
                  {"soon", nullptr, 0s}};
    for (const auto& each : kCases) {
        const Environment environment("/run/systemd/notify", each.interval, each.process);
        EXPECT_EQ(ServiceManager::from_environment().watchdog(), each.expected)
            << (each.interval == nullptr ? "" : each.interval) << " "
            << (each.process == nullptr ? "" : each.process);
    }
}

TEST(ServiceManager, VariablesAreKeptForAChildOnly) {
    const Environment environment("/run/systemd/notify", "30000000");
    EXPECT_TRUE(ServiceManager::from_environment(ServiceManager::Variables::Keep).is_present());
    EXPECT_TRUE(ServiceManager::from_environment().is_present());
    EXPECT_EQ(std::getenv("NOTIFY_SOCKET"), nullptr);
    EXPECT_EQ(std::getenv("WATCHDOG_USEC"), nullptr);
    EXPECT_FALSE(ServiceManager::from_environment().is_present());
}

TEST(ServiceManager, SendsFromTheSandbox) {
    EXPECT_EQ(test::exit_code_of([] {
                  const std::string name = unique_name("@sandbox-");
                  Manager manager(name);
                  const Environment environment(name);
                  const auto client = ServiceManager::from_environment();
                  if (!enter_sandbox({.capabilities = {}})) {
                      return 1;
                  }
                  return client.send("READY=1") && manager.take() == "READY=1" ? 0 : 2;
              }),
              0);
}

}  // namespace service_manager_test
}  // namespace penstock::process
