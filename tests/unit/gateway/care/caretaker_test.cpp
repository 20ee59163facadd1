// SPDX-License-Identifier: Apache-2.0
// The caretaker with a reconciler, real loopback sockets, and a listener for observed notices.
#include "control/gateway/care/caretaker.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <future>
#include <mutex>
#include <optional>
#include <utility>

#include "desired_builder.hpp"
#include "tests/support/free_port.hpp"
#include "tests/support/http_get.hpp"

namespace penstock::gateway {
namespace caretaker_test {

using namespace std::chrono_literals;
using test::http_get;

class CaretakerTest : public testing::Test {
 protected:
    void SetUp() override {
        reconciler_.begin(std::nullopt, std::make_shared<drivers::MirroredState>());
        reconciler_.start([this](std::unique_ptr<config::Snapshot>) {
            if (const auto hook = std::exchange(on_publish_, nullptr)) {
                hook();
            }
        });
    }
    // `exhausted`: the service ports without SNAT ports, returned once.
    void start(std::vector<model::ServiceKey> exhausted = {}) {
        auto created =
            Caretaker::create({.mode = model::GatewayMode::Node,
                               .healthz = "127.0.0.1:" + std::to_string(port_),
                               .sync_limit = 60s,
                               .allow_empty = allow_empty_,
                               .drained = drained_,
                               .loops = loops_,
                               .ports = ports_,
                               .twins = {{drivers::InterfaceAddress::parse("192.0.2.1/24").value()}},
                               .routes = [] { return std::make_shared<const route::RouteTable>(); },
                               .on_health = [this](bool is_well) { health_told_ = is_well ? 1 : 0; },
                               .exhausted = [exhausted]() mutable { return std::exchange(exhausted, {}); },
                               .on_observed = [this] { ++announced_; },
                               .vips = {.addresses = presence_}},
                              reconciler_);
        ASSERT_TRUE(created) << created.error().what;
        caretaker_ = std::move(*created);
        caretaker_->start();
    }
    void apply(std::vector<model::Service> services, bool node_eligible = true,
               const std::string& vips_withheld = "") {
        auto done = std::make_shared<std::promise<void>>();
        model::Environment environment;
        environment.node_eligible = node_eligible;
        environment.vips_withheld = vips_withheld;
        reconciler_.submit({.version = {"sync", ++version_},
                            .base = {},
                            .services = std::move(services),
                            .removed = {},
                            .invalid = {},
                            .environment = environment,
                            .received = std::chrono::steady_clock::now(),
                            .done = [done](Result<rpc::UpdateResult>) { done->set_value(); }});
        done->get_future().wait();
    }
    // VIP presence with a simulated Linux: linux_.
    void have_presence() {
        presence_ = VipPresenceOptions{
            .twins = {{drivers::InterfaceAddress::parse("192.0.2.1/24").value()}},
            .withdraw_empty = false,
            .add = [this](const route::LocalAddress& vip) -> Result<bool> {
                const std::lock_guard lock(linux_mutex_);
                linux_.vips.push_back(vip);
                reconciler_.mirrored(std::make_shared<drivers::MirroredState>(linux_), true);
                return true;
            },
            .remove = [this](const route::LocalAddress& vip) -> Status {
                const std::lock_guard lock(linux_mutex_);
                std::erase(linux_.vips, vip);
                reconciler_.mirrored(std::make_shared<drivers::MirroredState>(linux_), true);
                return {};
            },
            .announce = [](const route::LocalAddress&, const MacAddr&) {}};
    }
    bool is_present(const std::string& vip) {
        const std::lock_guard lock(linux_mutex_);
        return std::ranges::count(linux_.vips, ip(vip), &route::LocalAddress::address) > 0;
    }
    size_t present() {
        const std::lock_guard lock(linux_mutex_);
        return linux_.vips.size();
    }
    // With a long timeout: the machine may be busy.
    template <typename Condition>
    static bool eventually(const Condition& condition) {
        for (const auto until = std::chrono::steady_clock::now() + 30s;
             std::chrono::steady_clock::now() < until;) {
            if (condition()) {
                return true;
            }
            std::this_thread::sleep_for(5ms);
        }
        return false;
    }
    bool listens() const {
        const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        sockaddr_in to{.sin_family = AF_INET,
                       .sin_port = htons(port_),
                       .sin_addr = {htonl(INADDR_LOOPBACK)},
                       .sin_zero = {}};
        const bool open = connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof(to)) == 0;
        close(fd);
        return open;
    }
    bool healthz_says(const std::string& status) const {
        return http_get(port_, "/healthz").starts_with("HTTP/1.1 " + status);
    }

    const uint16_t port_ = test::free_port();
    uint64_t version_ = 0;
    std::atomic<int> announced_{0};
    Reconciler reconciler_{{.identity = {.gateway_name = "edge"},
                            .snapshots = {.twins = {{"pen0", {ip("192.0.2.1")}}},
                                          .snat_addresses = {},
                                          .snat_ports = {},
                                          .host_ephemeral = {}},
                            .state_file = ""}};
    bool allow_empty_ = false;
    bool drained_ = false;
    std::function<std::shared_ptr<const LoopHealth>()> loops_;
    std::function<std::vector<PortState>()> ports_;
    std::atomic<int> health_told_{-1};
    std::mutex linux_mutex_;
    drivers::MirroredState linux_;  // the addresses of the simulated Linux
    std::optional<VipPresenceOptions> presence_;
    std::function<void()> on_publish_;  // called by the next publication; set before apply()
    std::unique_ptr<Caretaker> caretaker_;
};

TEST_F(CaretakerTest, HealthzFollowsDrainAndTheNode_HC006_DRAIN006) {
    start();
    ASSERT_TRUE(eventually([&] { return listens(); }));
    EXPECT_TRUE(healthz_says("503")) << "nothing was ever applied";
    EXPECT_EQ(caretaker_->why_not_well(), std::vector<std::string>{"no configuration is in force"});
    apply({});
    EXPECT_TRUE(eventually([&] { return healthz_says("200") && health_told_ == 1; }))
        << "an empty one is one";
    caretaker_->set_drained(true);
    EXPECT_TRUE(healthz_says("503"));
    EXPECT_TRUE(http_get(port_, "/livez").starts_with("HTTP/1.1 200")) << "a restart would not mend it";
    EXPECT_TRUE(eventually([&] { return health_told_ == 0; }));
    caretaker_->set_drained(false);
    EXPECT_TRUE(healthz_says("200"));
    EXPECT_TRUE(eventually([&] { return health_told_ == 1; }));
    apply({}, false);
    EXPECT_TRUE(eventually([&] { return healthz_says("503"); })) << "the Node is being deleted";
    EXPECT_TRUE(http_get(port_, "/livez").starts_with("HTTP/1.1 200"));
    EXPECT_TRUE(http_get(port_, "/").starts_with("HTTP/1.1 404"));
}

TEST_F(CaretakerTest, MayBeWellWithoutAConfigurationAndDrainedFromTheStart_HC006_DRAIN006) {
    allow_empty_ = true;
    drained_ = true;
    start();
    ASSERT_TRUE(eventually([&] { return listens(); }));
    EXPECT_EQ(caretaker_->why_not_well(), std::vector<std::string>{"drained"});
    caretaker_->set_drained(false);
    EXPECT_TRUE(healthz_says("200"));
}

TEST_F(CaretakerTest, AStoppedLoopAndANeededPortMakeItUnwell_HC006) {
    std::mutex mutex;
    auto health = std::make_shared<const LoopHealth>();
    bool is_up = true;
    loops_ = [&] {
        const std::lock_guard lock(mutex);
        return health;
    };
    ports_ = [&] {
        const std::lock_guard lock(mutex);
        return std::vector<PortState>{{NicPortId{0}, "pen0", is_up}};
    };
    start();
    apply({service("web", {external("192.0.2.80", 80)}, {"10.0.0.1"})});
    EXPECT_TRUE(eventually([&] { return health_told_ == 1; }));
    {
        const std::lock_guard lock(mutex);
        health = std::make_shared<const LoopHealth>(
            LoopHealth{{{.name = "worker 0", .forwards = true, .is_stalled = true, .why = "stopped"}}});
    }
    caretaker_->look_again();
    EXPECT_TRUE(eventually([&] { return health_told_ == 0; }));
    EXPECT_EQ(caretaker_->why_not_live(), std::vector<std::string>{"stopped"});
    {
        const std::lock_guard lock(mutex);
        health = std::make_shared<const LoopHealth>();
        is_up = false;
    }
    caretaker_->look_again();
    EXPECT_TRUE(eventually([&] {
        return caretaker_->why_not_well() ==
               std::vector<std::string>{"port pen0 is down, and with it the way to 1 frontend"};
    }));
    EXPECT_TRUE(caretaker_->why_not_live().empty());
    caretaker_->stop();
}

TEST_F(CaretakerTest, ProbesDecideWhoGetsNewFlows_HC009_EP020) {
    auto server = http::Server::start("127.0.0.1:0", {});
    ASSERT_TRUE(server);
    auto web = service("web", {external("192.0.2.80", 80)}, {"127.0.0.1", "127.0.0.2"});
    web.sets[0].endpoints[0].port = (*server)->port();
    web.sets[0].endpoints[1].port = (*server)->port();  // no listener on 127.0.0.2
    web.probe = model::Probe{.interval_s = 1, .unhealthy = 1};
    start();
    apply({web});
    const auto usable = [&] {
        return reconciler_.read([](const ReconcilerState& state) {
            return state.compiler.compiled()->services.at(key("web")).service->sets[0].usable.size();
        });
    };
    EXPECT_TRUE(eventually([&] { return usable() == 1; }));
    server->reset();
    EXPECT_TRUE(eventually([&] { return usable() == 2; })) << "all down: all are used";
    EXPECT_TRUE(reconciler_.read([](const ReconcilerState& state) {
        return state.compiler.compiled()->services.at(key("web")).fails_open;
    }));
    apply({});
    EXPECT_TRUE(eventually([&] { return caretaker_->probe_counters().targets == 0; }));
    EXPECT_TRUE(eventually(
        [&] { return reconciler_.read([](const ReconcilerState& state) { return state.health.empty(); }); }));
}

TEST_F(CaretakerTest, VipsArePresentWhileServedAndNotWhileDrained_LB018_DRAIN006) {
    have_presence();
    std::atomic<bool> forwards{true};
    loops_ = [&] {
        return std::make_shared<const LoopHealth>(
            LoopHealth{{{.name = "worker 0", .forwards = true, .is_stalled = !forwards, .why = "x"}}});
    };
    start();
    apply({service("web", {external("192.0.2.80", 80)}, {"10.0.0.1"})});
    EXPECT_TRUE(eventually([&] { return present() == 1; }));
    caretaker_->set_drained(true);
    EXPECT_TRUE(eventually([&] { return present() == 0; }));
    caretaker_->set_drained(false);
    EXPECT_TRUE(eventually([&] { return present() == 1; }));
    forwards = false;
    caretaker_->look_again();
    EXPECT_TRUE(eventually([&] { return present() == 0; })) << "a worker has stopped";
    forwards = true;
    caretaker_->look_again();
    EXPECT_TRUE(eventually([&] { return present() == 1; }));
    apply({});
    EXPECT_TRUE(eventually([&] { return present() == 0; })) << "its last Service has gone";
    apply({service("web", {external("192.0.2.80", 80)}, {"10.0.0.1"})});
    ASSERT_TRUE(eventually([&] {
        return reconciler_.read([](const ReconcilerState& state) { return state.mirror->vips.size(); }) == 1;
    }));
    EXPECT_TRUE(reconciler_.read([](const ReconcilerState& state) {
        return state.identity.addresses.empty();
    })) << "none of the host's own";
    caretaker_->stop();
    EXPECT_EQ(present(), 0U) << "nothing is left behind";
}

TEST_F(CaretakerTest, VipsAreNotPresentWhileTheDesiredStateWithholdsThem_PRESENCE005) {
    have_presence();
    const auto web = service("web", {external("192.0.2.80", 80)}, {"10.0.0.1"});
    start();
    apply({web});
    EXPECT_TRUE(eventually([&] { return present() == 1; }));
    EXPECT_EQ(caretaker_->vips_withheld(), "");
    apply({web}, true, "Node edge-1 is excluded");
    EXPECT_TRUE(eventually([&] { return present() == 0; }));
    EXPECT_EQ(caretaker_->vips_withheld(), "Node edge-1 is excluded");
    EXPECT_TRUE(caretaker_->why_not_well().empty())
        << "health is about the gateway, and its Services are served";
    EXPECT_TRUE(healthz_says("200"));
    apply({web, service("dns", {external("192.0.2.81", 53)}, {"10.0.0.2"})}, true,
          "Node edge-1 has no network");
    EXPECT_TRUE(eventually([&] { return caretaker_->vips_withheld() == "Node edge-1 has no network"; }))
        << "another reason";
    EXPECT_EQ(present(), 0U) << "new Services do not bring their VIPs";
    caretaker_->set_drained(true);
    apply({web});
    EXPECT_TRUE(eventually([&] { return caretaker_->vips_withheld().empty(); }));
    EXPECT_EQ(present(), 0U) << "still drained";
    caretaker_->set_drained(false);
    EXPECT_TRUE(eventually([&] { return present() == 1; }));
}

TEST_F(CaretakerTest, VipsStayWithheldOverARestart_PRESENCE005) {
    have_presence();
    apply({service("web", {external("192.0.2.80", 80)}, {"10.0.0.1"})}, true, "Node edge-1 is excluded");
    start();  // the state is already in force, as with a last-good file
    EXPECT_TRUE(eventually([&] {
        return caretaker_->vips_withheld() == "Node edge-1 is excluded" && caretaker_->rounds() > 1;
    }));
    EXPECT_EQ(present(), 0U);
}

// A snapshot that is compiled but not yet in every worker: neither a caretaker that runs nor one that
// starts then announces its VIPs.
TEST_F(CaretakerTest, AVipIsAnnouncedOnceEveryWorkerServesIt_PRESENCE001) {
    for (const bool starts_meanwhile : {false, true}) {
        const std::string vip = starts_meanwhile ? "192.0.2.81" : "192.0.2.80";
        have_presence();
        if (!starts_meanwhile) {
            start();
        }
        std::promise<void> is_publishing, may_finish;
        on_publish_ = [&] {
            is_publishing.set_value();
            may_finish.get_future().wait();
        };
        auto applied = std::async(std::launch::async,
                                  [&] { apply({service("web-" + vip, {external(vip, 80)}, {"10.0.0.1"})}); });
        is_publishing.get_future().wait();
        if (starts_meanwhile) {
            caretaker_.reset();
            start();
        }
        const uint64_t rounds = caretaker_->rounds();
        EXPECT_TRUE(eventually([&] {
            caretaker_->look_again();
            return caretaker_->rounds() > rounds + 2;
        }));
        EXPECT_FALSE(is_present(vip)) << "the workers do not have it";
        may_finish.set_value();
        applied.wait();
        EXPECT_TRUE(eventually([&] { return is_present(vip); })) << vip;
    }
}

TEST_F(CaretakerTest, WithoutVipPresenceNothingIsWithheld_PRESENCE005) {
    start();
    apply({}, true, "Node edge-1 is excluded");
    EXPECT_TRUE(eventually([&] { return caretaker_->why_not_well().empty() && caretaker_->rounds() > 1; }));
    EXPECT_EQ(caretaker_->vips_withheld(), "") << "no VIP is this gateway's to withdraw";
}

TEST_F(CaretakerTest, WhatIsObservedIsListedAndAnnouncedOnce_NAT002) {
    start({key("web")});
    ASSERT_TRUE(eventually([&] { return announced_ == 1; }));
    const auto observed = caretaker_->observed();
    ASSERT_EQ(observed.size(), 1U);
    EXPECT_EQ(observed[0].key, key("web"));
    EXPECT_EQ(observed[0].notice.reason, "SNATPortExhausted");
    caretaker_->stop();
    EXPECT_EQ(announced_, 1);
}

TEST_F(CaretakerTest, AStrangerOnANodePortIsObserved_NODEPORT010) {
    const int stranger = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in at{.sin_family = AF_INET, .sin_port = 0, .sin_addr = {htonl(INADDR_ANY)}, .sin_zero = {}};
    socklen_t length = sizeof(at);
    ASSERT_EQ(bind(stranger, reinterpret_cast<sockaddr*>(&at), length), 0);
    ASSERT_EQ(listen(stranger, 1), 0);
    ASSERT_EQ(getsockname(stranger, reinterpret_cast<sockaddr*>(&at), &length), 0);
    start();
    apply({service("web", {node_port(ntohs(at.sin_port))}, {"10.0.0.1"})});
    EXPECT_TRUE(eventually([&] { return announced_ == 1; }));
    ASSERT_EQ(caretaker_->observed().size(), 1U);
    EXPECT_EQ(caretaker_->observed()[0].notice.reason, "NodePortInUse");
    apply({});
    EXPECT_TRUE(eventually([&] { return caretaker_->observed().empty(); })) << "the NodePort has gone";
    close(stranger);
}

}  // namespace caretaker_test
}  // namespace penstock::gateway
