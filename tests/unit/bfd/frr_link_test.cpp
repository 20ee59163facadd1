// SPDX-License-Identifier: Apache-2.0
#include "control/bfd/frr_link.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "tests/support/patience.hpp"
#include "tests/support/scratch_folder.hpp"
#include "tests/unit/bfd/frr_bytes.hpp"

namespace penstock::bfd {
namespace frr_link_test {

// bfdd's side of the socket.
class FakeBfdd {
 public:
    explicit FakeBfdd(const std::string& path) {
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        std::memcpy(address.sun_path, path.c_str(), path.size());
        listener_ = Descriptor(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
        PENSTOCK_CHECK(::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) ==
                       0);
        PENSTOCK_CHECK(::listen(listener_.get(), 4) == 0);
    }
    [[nodiscard]] bool accept() {
        if (!is_readable(listener_.get())) {
            return false;
        }
        peer_ = Descriptor(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
        received_.clear();
        return peer_.is_open();
    }
    void send(const std::vector<uint8_t>& bytes) {
        EXPECT_EQ(::send(peer_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
                  static_cast<ssize_t>(bytes.size()));
    }
    void hang_up() { peer_ = Descriptor(); }
    // The next whole message.
    [[nodiscard]] std::optional<std::vector<uint8_t>> message() {
        std::array<uint8_t, 4'096> bytes;
        while (peer_.is_open() && is_readable(peer_.get())) {
            const ssize_t count = ::recv(peer_.get(), bytes.data(), bytes.size(), 0);
            if (count <= 0) {
                hung_up_ = true;
                break;
            }
            received_.insert(received_.end(), bytes.begin(), bytes.begin() + count);
        }
        if (received_.size() < 8 || received_.size() < received_[7]) {
            return std::nullopt;
        }
        std::vector<uint8_t> first(received_.begin(), received_.begin() + received_[7]);
        received_.erase(received_.begin(), received_.begin() + received_[7]);
        return first;
    }
    // The other side has closed the connection.
    [[nodiscard]] bool hung_up() {
        (void)message();
        return hung_up_;
    }
    // Waits for a message that reports this state of session 7.
    [[nodiscard]] bool learns(State state) {
        return test::comes_true([&] {
            for (auto next = message(); next; next = message()) {
                if ((*next)[3] == 4 && (*next)[11] == 7 && (*next)[32] == static_cast<uint8_t>(state)) {
                    return true;
                }
            }
            return false;
        });
    }

 private:
    static bool is_readable(int fd) {
        pollfd one{.fd = fd, .events = POLLIN, .revents = 0};
        return ::poll(&one, 1, 0) == 1;
    }
    Descriptor listener_, peer_;
    std::vector<uint8_t> received_;
    bool hung_up_ = false;
};

class FrrLinkTest : public ::testing::Test {
 protected:
    void SetUp() override { start({}); }
    void start(std::optional<FrrLink::Handed> former) {
        link = std::make_unique<FrrLink>(FrrLink::Options{
            .path = path,
            .engine = engine.get(),
            .twins =
                [] { return std::vector<Twin>{{"up0", NicPortId{0}, {{*IpAddr::parse("192.0.2.1"), 24}}}}; },
            .forwards = [this] { return forwards.load(); },
            .former = std::move(former)});
    }
    // The worker's part: a round at this time, in which the peer of session 7 sends `packet`.
    void round(std::optional<ControlPacket> packet = {}) {
        counters[stats::Counter::Polls].add(1);
        time.value += 5'000'000;
        if (packet) {
            is_accepted = engine->receive(*packet,
                                          {.source = *IpAddr::parse("192.0.2.2"),
                                           .destination = *IpAddr::parse("192.0.2.1"),
                                           .port = NicPortId{0},
                                           .ttl = 255},
                                          time);
        }
        engine->run(time, [&](const Terms&, const ControlPacket& sent) {
            last_sent = sent;
            return true;
        });
    }
    [[nodiscard]] static ControlPacket from_peer(State state) {
        return {.state = state,
                .detect_multiplier = 3,
                .my_discriminator = 99,
                .your_discriminator = 7,
                .desired_min_tx_us = 50'000,
                .required_min_rx_us = 50'000};
    }
    void bring_up(FakeBfdd& bfdd) {
        ASSERT_TRUE(test::comes_true([&] { return bfdd.accept(); }));
        bfdd.send(frr_bytes({}));
        ASSERT_TRUE(test::comes_true([&] {
            round();
            return engine->counts(7) != nullptr;
        }));
        round(from_peer(State::Init));
        ASSERT_TRUE(is_accepted);
        ASSERT_TRUE(bfdd.learns(State::Up));
    }
    [[nodiscard]] bool sees(const std::function<bool(const FrrLink::View&)>& condition) const {
        return test::comes_true([&] { return condition(link->view()); });
    }

    const test::ScratchFolder folder;
    const std::string path = folder.path() / "dp.sock";
    stats::WorkerCounters counters;
    const stats::WorkerCounters* row = &counters;
    std::unique_ptr<Engine> engine = std::make_unique<Engine>(TscRate{1'000'000'000}, 1, std::span(&row, 1));
    TscTime time{};
    bool is_accepted = false;
    std::optional<ControlPacket> last_sent;
    std::atomic<bool> forwards{true};
    std::unique_ptr<FrrLink> link;
};

TEST_F(FrrLinkTest, ConnectsWhenBfddIsThere) {
    EXPECT_TRUE(sees([&](const auto& view) { return view.fault == path + ": No such file or directory"; }));
    FakeBfdd bfdd(path);
    EXPECT_TRUE(test::comes_true([&] { return bfdd.accept(); }));
    EXPECT_TRUE(sees([](const auto& view) { return view.fault.empty(); }));
    EXPECT_TRUE(link->view().sessions.empty());
}

TEST_F(FrrLinkTest, TakesSessionsToTheWorkerAndTheirStatesToBfdd) {
    FakeBfdd bfdd(path);
    bring_up(bfdd);
    const FrrLink::View view = link->view();
    ASSERT_EQ(view.sessions.size(), 1U);
    EXPECT_EQ(view.sessions[0].status.state, State::Up);
    EXPECT_EQ(view.sessions[0].received, 1U);
    EXPECT_GE(view.sessions[0].sent, 1U);
    round(from_peer(State::Down));
    EXPECT_TRUE(bfdd.learns(State::Down));
    bfdd.send(frr_bytes({}, true));
    EXPECT_TRUE(test::comes_true([&] {
        round();
        return engine->counts(7) == nullptr;
    }));
    EXPECT_EQ(last_sent->state, State::AdminDown);
    EXPECT_TRUE(link->view().sessions.empty());
}

TEST_F(FrrLinkTest, AnswersEchosAndRequestsForCounters) {
    FakeBfdd bfdd(path);
    bring_up(bfdd);
    bfdd.send(frr_message(1, 0, 3, 16));
    auto asked = frr_message(1, 5, 4, 4);
    put32(asked, 8, 7);
    bfdd.send(asked);
    std::vector<uint8_t> types;
    EXPECT_TRUE(test::comes_true([&] {
        while (const auto message = bfdd.message()) {
            types.push_back((*message)[3]);
            if (types.back() == 6) {
                EXPECT_EQ((*message)[5], 4) << "the request's number";
                EXPECT_EQ((*message)[8 + 8 + 15], 1) << "one packet was received";
                return true;
            }
        }
        return false;
    }));
    EXPECT_NE(std::ranges::find(types, 1), types.end()) << "the reply to the echo";
}

TEST_F(FrrLinkTest, SessionsOutliveARestartOfBfdd) {
    FakeBfdd bfdd(path);
    bring_up(bfdd);
    bfdd.hang_up();
    EXPECT_TRUE(sees([](const auto& view) { return view.fault == "bfdd has closed it"; }));
    round(from_peer(State::Up));
    EXPECT_TRUE(is_accepted);
    EXPECT_EQ(link->view().sessions.at(0).status.state, State::Up);
    ASSERT_TRUE(test::comes_true([&] { return bfdd.accept(); }));
    bfdd.send(frr_bytes({.discriminator = 70}));
    EXPECT_TRUE(test::comes_true([&] {
        round();
        return engine->counts(70) != nullptr;
    }));
    EXPECT_EQ(engine->counts(7), nullptr);
    EXPECT_TRUE(sees([](const auto& view) {
        return view.sessions.size() == 1 && view.sessions[0].discriminator == 70 &&
               view.sessions[0].status.state == State::Up;
    }));
}

TEST_F(FrrLinkTest, EndsAConnectionThatDoesNotFollowTheProtocol) {
    FakeBfdd bfdd(path);
    bring_up(bfdd);
    bfdd.send(frr_message(9, 2, 0, 132));
    EXPECT_TRUE(test::comes_true([&] { return bfdd.hung_up(); }));
    EXPECT_TRUE(sees([](const auto& view) {
        return view.fault == "version 9 of the protocol; 1 and 2 are supported" && view.sessions.size() == 1;
    }));
}

TEST_F(FrrLinkTest, WithholdsPacketsWhileALoopHasStalled) {
    EXPECT_FALSE(link->view().is_withheld);
    forwards = false;
    EXPECT_TRUE(sees([](const auto& view) { return view.is_withheld; }));
    forwards = true;
    EXPECT_TRUE(sees([](const auto& view) { return !view.is_withheld; }));
}

TEST_F(FrrLinkTest, ASuccessorContinuesOnTheSameConnection) {
    FakeBfdd bfdd(path);
    bring_up(bfdd);
    auto handed = link->hand_over();
    link.reset();
    ASSERT_TRUE(handed.socket.is_open());
    ASSERT_EQ(handed.sessions.size(), 1U);
    engine = std::make_unique<Engine>(TscRate{1'000'000'000}, 2, std::span(&row, 1));
    last_sent.reset();
    start(std::move(handed));
    round();
    ASSERT_TRUE(last_sent) << "in the first round";
    EXPECT_EQ(last_sent->state, State::Up);
    EXPECT_EQ(last_sent->your_discriminator, 99U);
    EXPECT_EQ(link->view().fault, "");
    round(from_peer(State::Down));
    EXPECT_TRUE(bfdd.learns(State::Down)) << "on the connection of the former process";
    EXPECT_FALSE(bfdd.accept()) << "there is no other connection";
}

TEST_F(FrrLinkTest, ASuccessorWithoutTheConnectionKeepsTheSessionsForBfdd) {
    FakeBfdd bfdd(path);
    bring_up(bfdd);
    auto handed = link->hand_over();
    link.reset();
    handed.socket = Descriptor();
    engine = std::make_unique<Engine>(TscRate{1'000'000'000}, 2, std::span(&row, 1));
    start(std::move(handed));
    round();
    EXPECT_NE(engine->counts(7), nullptr);
    EXPECT_TRUE(test::comes_true([&] { return bfdd.accept(); }));
}

}  // namespace frr_link_test
}  // namespace penstock::bfd
