// SPDX-License-Identifier: Apache-2.0
// The reconciler's thread between the stream, Linux and the workers: publications, answers, saved states, and
// no publication without a change.
#include "control/gateway/apply/reconciler.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <mutex>
#include <thread>

#include "tests/unit/gateway/desired_builder.hpp"

namespace penstock::gateway {
namespace reconciler_test {

using Kind = rpc::ServiceOutcome::Kind;
using Answer = Result<rpc::UpdateResult>;

// A reconciler with a list of snapshots instead of workers.
class Bench {
 public:
    explicit Bench(std::string state_file = "", std::optional<LastGood> last_good = std::nullopt)
        : reconciler({.identity = {.gateway_name = "edge"},
                      .snapshots = {.twins = {{"pen0", {ip("192.0.2.1")}}},
                                    .snat_addresses = {},
                                    .snat_ports = {},
                                    .host_ephemeral = {},
                                    .packets = {.answers_vip_echo = false, .passes_ip_options = false}},
                      .state_file = std::move(state_file),
                      .now = [this] {
                          return std::chrono::steady_clock::time_point(std::chrono::seconds(clock_s));
                      }}) {
        initial = reconciler.begin(std::move(last_good), linux_with({"192.0.2.1"}));
        reconciler.set_compiled_listener([this](const Publication& publication) {
            const std::lock_guard lock(mutex);
            compiled.emplace_back(published.size(), publication.changed);
        });
        reconciler.start(
            [this](std::unique_ptr<config::Snapshot> next) {
                std::unique_lock lock(mutex);
                gate.wait(lock, [this] { return open; });
                published.push_back(*next);
                gate.notify_all();
            },
            {.orders_done = [this] { return orders_done.load(); }, .flows_of = {}});
    }
    // The clock by which flows drain; it stands until the test advances it.
    void pass(int64_t seconds) {
        clock_s += seconds;
        reconciler.look_at_clock();
    }
    void wait_for_publications(size_t count) {
        std::unique_lock lock(mutex);
        gate.wait(lock, [&] { return published.size() >= count; });
    }
    static std::shared_ptr<const drivers::MirroredState> linux_with(
        const std::vector<std::string>& addresses) {
        auto state = std::make_shared<drivers::MirroredState>();
        for (const auto& address : addresses) {
            state->addresses.push_back({{0}, ip(address), 24});
        }
        return state;
    }
    // Workers that do not reach a quiescent point until let().
    void hold() {
        const std::lock_guard lock(mutex);
        open = false;
    }
    void let() {
        {
            const std::lock_guard lock(mutex);
            open = true;
        }
        gate.notify_all();
    }
    std::future<Answer> send(rpc::StateUpdate update) {
        auto promise = std::make_shared<std::promise<Answer>>();
        update.received = std::chrono::steady_clock::now();
        update.done = [promise](Answer answer) { promise->set_value(std::move(answer)); };
        auto future = promise->get_future();
        reconciler.submit(std::move(update));
        return future;
    }
    static rpc::StateUpdate full(uint64_t version, std::vector<model::Service> services) {
        return {.version = {"sync", version}, .base = {}, .services = std::move(services)};
    }
    static rpc::StateUpdate delta(uint64_t base, uint64_t version, std::vector<model::Service> services,
                                  std::vector<model::ServiceKey> removed = {}) {
        return {.version = {"sync", version},
                .base = rpc::StateVersion{"sync", base},
                .services = std::move(services),
                .removed = std::move(removed)};
    }
    config::Snapshot last() {
        const std::lock_guard lock(mutex);
        return published.back();
    }
    size_t publications() {
        const std::lock_guard lock(mutex);
        return published.size();
    }

    std::atomic<int64_t> clock_s = 1'000;
    std::atomic<uint64_t> orders_done = 0;
    std::mutex mutex;
    std::condition_variable gate;
    bool open = true;
    std::vector<config::Snapshot> published;
    // For each compilation: the number of publications before it, and what changed.
    std::vector<std::pair<size_t, std::vector<model::ServiceKey>>> compiled;
    std::unique_ptr<config::Snapshot> initial;
    Reconciler reconciler;  // last: its thread ends before the objects that it writes to
};

model::Service web(const std::string& endpoint = "10.0.0.1") {
    return service("web", {external("192.0.2.80", 80)}, {endpoint});
}

TEST(Reconciler, PublishesWhatIsBlockedAndWhatElseIsAskedFor) {
    Bench bench;
    EXPECT_EQ(bench.initial->blocked_sources, nullptr);
    bench.reconciler.block(route::PrefixSet({net("198.51.100.0/24")}));
    bench.wait_for_publications(1);
    ASSERT_NE(bench.published[0].blocked_sources, nullptr);
    EXPECT_TRUE(bench.published[0].blocked_sources->contains(ip("198.51.100.7")));
    bench.reconciler.publish_again();
    bench.wait_for_publications(2);
    EXPECT_EQ(bench.published[1].blocked_sources, bench.published[0].blocked_sources);
    bench.reconciler.block({});
    bench.wait_for_publications(3);
    EXPECT_EQ(bench.published[2].blocked_sources, nullptr) << "no list, no look";
}

TEST(Reconciler, ANewPlanOfSharesChangesSnatAddressesAndFrontendsInOneSnapshot) {
    Bench bench;
    ASSERT_TRUE(bench.send(Bench::full(1, {web()})).get());
    const auto group = [&] {
        return bench.last().services->find(ip("192.0.2.80"), 80, Protocol::Tcp)->snat_group;
    };
    EXPECT_EQ(group(), 0);
    shares::Plan plan{.version = 1,
                      .gateways = {{"edge"}, {"other"}},
                      .shares = {{{net("192.0.2.80/32")}, "edge", "other", {ip("203.0.113.1")}},
                                 {{}, "other", "edge", {ip("203.0.113.2"), ip("2001:db8::2")}}}};
    const auto apply = [&] {
        const size_t before = bench.publications();
        bench.reconciler.set_shares(std::make_shared<const GatewayShares>(plan, "edge"));
        bench.wait_for_publications(before + 1);
    };
    const nat::SnatAddress twin{.address = ip("192.0.2.1"), .egress = {0}, .shared_with_host = true};
    using nat::PortPart;
    const auto of_share = [](const char* address, uint8_t share, PortPart part) {
        return nat::SnatAddress{
            .address = ip(address), .egress = {}, .group = static_cast<uint8_t>(share + 1), .part = part};
    };
    apply();
    EXPECT_EQ(group(), 1);
    EXPECT_TRUE(bench.last().snat->addresses ==
                nat::SnatAddresses({twin, of_share("203.0.113.1", 0, PortPart::Primary),
                                    of_share("203.0.113.2", 1, PortPart::Heir),
                                    of_share("2001:db8::2", 1, PortPart::Heir)}));
    plan.shares[0].primary = "third";
    plan.shares[1].snat = {ip("192.0.2.1")};  // which Linux has
    apply();
    EXPECT_EQ(group(), 0);
    EXPECT_TRUE(bench.last().snat->addresses ==
                nat::SnatAddresses({of_share("203.0.113.1", 0, PortPart::None),
                                    {.address = ip("192.0.2.1"),
                                     .egress = {},
                                     .shared_with_host = true,
                                     .group = 2,
                                     .part = PortPart::Heir},
                                    of_share("203.0.113.2", 1, PortPart::None),
                                    of_share("2001:db8::2", 1, PortPart::None)}))
        << "the workers still find the owners of replies to addresses of others and of the former plan";
}

TEST(Reconciler, TheFirstSnapshotHasTheSnatAddressesOfShares) {
    Reconciler reconciler({.identity = {.gateway_name = "edge"}, .snapshots = {}});
    reconciler.set_shares(std::make_shared<const GatewayShares>(
        shares::Plan{.version = 1, .gateways = {{"edge"}}, .shares = {{{}, "edge", "", {ip("203.0.113.1")}}}},
        "edge"));
    const auto first = reconciler.begin(std::nullopt, std::make_shared<const drivers::MirroredState>());
    ASSERT_EQ(first->snat->addresses.size(), 1U);
    EXPECT_EQ(first->snat->addresses[0].part, nat::PortPart::Primary);
    EXPECT_FALSE(reconciler.waiting_since());
}

TEST(Reconciler, VipsOfLinksAreAnsweredWhenEveryWorkerHasThem_PRESENCE001) {
    Bench bench;
    EXPECT_EQ(bench.initial->link_vips, nullptr);
    std::promise<void> told;
    bench.reconciler.set_answered_listener([&] { told.set_value(); });
    bench.hold();
    const auto vips = std::make_shared<const route::LinkVips>(
        std::vector<route::LinkVip>{{ip("192.0.2.80"), NicPortId{0}}});
    bench.reconciler.answer_for(vips);
    EXPECT_EQ(bench.reconciler.answered(), nullptr);
    bench.let();
    told.get_future().wait();
    EXPECT_EQ(bench.reconciler.answered(), vips);
    EXPECT_EQ(bench.last().link_vips, vips);
    bench.reconciler.set_answered_listener(nullptr);
    bench.reconciler.block(route::PrefixSet({net("198.51.100.0/24")}));
    bench.wait_for_publications(2);
    EXPECT_EQ(bench.last().link_vips, vips) << "every later snapshot has them";
    bench.reconciler.answer_for(nullptr);
    bench.wait_for_publications(3);
    EXPECT_EQ(bench.last().link_vips, nullptr);
}

TEST(Reconciler, EachSnapshotSaysWhatTheOperatorDecidedAboutOddPackets) {
    Bench bench;
    EXPECT_FALSE(bench.initial->packets.passes_ip_options);
    bench.reconciler.publish_again();
    bench.wait_for_publications(1);
    EXPECT_FALSE(bench.published[0].packets.passes_ip_options);
}

TEST(Reconciler, AFullStateIsPublishedThenAnswered) {
    Bench bench;
    const auto answer = bench.send(Bench::full(1, {web()})).get();
    ASSERT_TRUE(answer) << answer.error().what;
    EXPECT_EQ(answer->services, (std::vector<rpc::ServiceOutcome>{{key("web"), Kind::Applied, ""}}));
    EXPECT_NE(bench.last().services->find(ip("192.0.2.80"), 80, Protocol::Tcp), nullptr);
    bench.reconciler.read([](const ReconcilerState& state) {
        EXPECT_EQ(state.applied, (rpc::StateVersion{"sync", 1}));
        EXPECT_EQ(state.origin, StateOrigin::Stream);
    });
}

TEST(Reconciler, AChangeWaitsUntilAllWorkersHaveIt_HC006) {
    Bench bench;
    EXPECT_FALSE(bench.reconciler.waiting_since());
    bench.hold();
    const auto before = std::chrono::steady_clock::now();
    auto first = bench.send(Bench::full(1, {web()}));
    auto second = bench.send(Bench::delta(1, 2, {web("10.0.0.2")}));
    ASSERT_TRUE(bench.reconciler.waiting_since());
    EXPECT_GE(*bench.reconciler.waiting_since(), before);
    EXPECT_LE(*bench.reconciler.waiting_since(), std::chrono::steady_clock::now())
        << "since the first of them came";
    bench.let();
    EXPECT_TRUE(second.get());
    while (bench.reconciler.waiting_since()) {
        std::this_thread::yield();
    }
}

TEST(Reconciler, WhatProbesFindIsPublishedAndListenersLearnWhatChanged_HC009) {
    Bench bench;
    auto probed = web();
    probed.probe = model::Probe{.fails_closed = true};
    ASSERT_TRUE(
        bench.send(Bench::full(1, {probed, service("other", {external("192.0.2.81", 80)}, {"10.0.0.9"})}))
            .get());
    std::promise<std::vector<model::ServiceKey>> changed;
    // The answer to the full state may arrive before the listener is called for its own publication.
    bench.reconciler.set_published_listener([&, told = false](const Publication& publication) mutable {
        if (publication.changed.size() == 1 && !std::exchange(told, true)) {
            changed.set_value(publication.changed);
        }
    });
    auto health = std::make_shared<EndpointHealth>();
    health->verdicts[{ip("10.0.0.1"), 8080}] = Health::Up;
    const auto usable = [&] {
        return bench.last()
            .services->find(ip("192.0.2.80"), 80, Protocol::Tcp)
            ->service->sets[0]
            .usable.size();
    };
    EXPECT_EQ(usable(), 0U);
    bench.reconciler.probed({{key("web"), health}});
    EXPECT_EQ(changed.get_future().get(), std::vector{key("web")});
    EXPECT_EQ(usable(), 1U);
    bench.reconciler.set_published_listener(nullptr);
}

// The names of numbers are written before workers have the numbers (tables/table_keeper.hpp).
TEST(Reconciler, AListenerLearnsWhatWasCompiledBeforeItIsPublished) {
    Bench bench;
    ASSERT_TRUE(bench.send(Bench::full(1, {web()})).get());
    bench.reconciler.publish_again();  // nothing is compiled
    bench.wait_for_publications(2);
    ASSERT_TRUE(bench.send(Bench::delta(1, 2, {}, {key("web")})).get());
    const std::lock_guard lock(bench.mutex);
    const std::vector changed{key("web")};
    EXPECT_EQ(bench.compiled, (decltype(bench.compiled){{0, changed}, {2, changed}}));
}

// A control plane sends a full state again to detect differences (audit): the answer contains only the
// difference.
TEST(Reconciler, AFullStateIsAnsweredWithWhatDifferedFromWhatWasProgrammed_APISYNC021) {
    Bench bench;
    const auto stays = service("stays", {external("192.0.2.81", 80)}, {"10.0.0.1"});
    const auto owner = service("owner", {external("192.0.2.82", 80)}, {"10.0.0.2"});
    const auto refused = service("refused", {external("192.0.2.82", 80)}, {"10.0.0.3"});
    const auto goes = service("goes", {external("192.0.2.83", 80)}, {"10.0.0.4"});
    ASSERT_TRUE(bench.send(Bench::full(1, {stays, owner, goes, web()})).get());
    ASSERT_TRUE(bench.send(Bench::delta(1, 2, {refused})).get());
    const auto audit = [&](uint64_t version, std::vector<model::Service> services) {
        auto answer = bench.send(Bench::full(version, std::move(services))).get();
        EXPECT_TRUE(answer);
        std::ranges::sort(answer->services, {}, &rpc::ServiceOutcome::key);
        std::vector<std::pair<std::string, Kind>> out;
        for (const auto& outcome : answer->services) {
            out.emplace_back(outcome.key.name, outcome.kind);
        }
        return out;
    };
    using Outcomes = std::vector<std::pair<std::string, Kind>>;
    EXPECT_EQ(audit(3, {stays, owner, refused, goes, web()}), (Outcomes{{"refused", Kind::Refused}}))
        << "all else is as it should be";
    EXPECT_EQ(audit(4, {stays, owner, refused, web("10.0.0.9")}),
              (Outcomes{{"goes", Kind::Removed}, {"refused", Kind::Refused}, {"web", Kind::Applied}}));
    EXPECT_EQ(audit(5, {stays, refused, web("10.0.0.9")}),
              (Outcomes{{"owner", Kind::Removed}, {"refused", Kind::Applied}}));
    EXPECT_EQ(audit(6, {stays, refused, web("10.0.0.9")}), Outcomes{});
    auto renamed = stays;
    renamed.sets[0].endpoints[0].zone = "b";
    EXPECT_EQ(audit(7, {renamed, refused, web("10.0.0.9")}), (Outcomes{{"stays", Kind::Applied}}))
        << "what people read counts as well";
}

TEST(Reconciler, AfterARestartAnEqualFullStateChangesNothing_APISYNC021) {
    LastGood last_good;
    last_good.state = {{"sync", 7}, desired({web()}), {}};
    Bench bench("", std::move(last_good));
    const auto answer = bench.send(Bench::full(8, {web()})).get();
    ASSERT_TRUE(answer);
    EXPECT_TRUE(answer->services.empty());
    EXPECT_EQ(bench.last().services->find(ip("192.0.2.80"), 80, Protocol::Tcp)->service,
              bench.initial->services->find(ip("192.0.2.80"), 80, Protocol::Tcp)->service)
        << "the very object";
}

TEST(Reconciler, NothingIsAnsweredBeforeEveryWorkerHasIt) {
    Bench bench;
    bench.hold();
    auto answer = bench.send(Bench::full(1, {web()}));
    EXPECT_EQ(answer.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
    bench.reconciler.read([](const ReconcilerState& state) { EXPECT_EQ(state.applied.number, 0U); });
    bench.let();
    const auto result = answer.get();
    ASSERT_TRUE(result);
    EXPECT_GE(result->apply_us, 50'000U);
}

TEST(Reconciler, DeltasBuildOnWhatIsInForceAndNothingElse) {
    Bench bench;
    EXPECT_EQ(bench.send(Bench::delta(1, 2, {})).get().error().code, Errc::Outdated)
        << "before any full state";
    ASSERT_TRUE(bench.send(Bench::full(1, {web()})).get());
    const auto wrong = bench.send(Bench::delta(7, 8, {}, {key("web")})).get();
    EXPECT_EQ(wrong.error().code, Errc::Outdated);
    EXPECT_NE(wrong.error().what.find("version 7 of sync"), std::string::npos);
    EXPECT_NE(bench.last().services->find(ip("192.0.2.80"), 80, Protocol::Tcp), nullptr)
        << "a refused delta changed something";
    const auto answer =
        bench
            .send(Bench::delta(1, 2, {service("api", {external("192.0.2.81", 80)}, {"10.0.0.2"})},
                               {key("web"), key("unknown")}))
            .get();
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->services, (std::vector<rpc::ServiceOutcome>{{key("web"), Kind::Removed, ""},
                                                                  {key("api"), Kind::Applied, ""}}));
    EXPECT_EQ(bench.last().services->find(ip("192.0.2.80"), 80, Protocol::Tcp), nullptr);
    EXPECT_NE(bench.last().services->find(ip("192.0.2.81"), 80, Protocol::Tcp), nullptr);
}

TEST(Reconciler, WhatQueuesUpIsOnePublicationAndStillOneAnswerEach) {
    Bench bench;
    bench.hold();
    auto first = bench.send(Bench::full(1, {web()}));
    while (bench.reconciler.read([](const ReconcilerState& state) { return state.accepted.number == 0; })) {
        std::this_thread::yield();
    }
    std::vector<std::future<Answer>> more;
    for (uint64_t version = 2; version <= 20; ++version) {
        more.push_back(
            bench.send(Bench::delta(version - 1, version, {web("10.0.0." + std::to_string(version))})));
    }
    bench.let();
    ASSERT_TRUE(first.get());
    for (auto& answer : more) {
        const auto result = answer.get();
        ASSERT_TRUE(result) << result.error().what;
        EXPECT_EQ(result->services.size(), 1U);
    }
    EXPECT_EQ(bench.publications(), 2U);
    EXPECT_EQ(bench.last().services->find(ip("192.0.2.80"), 80, Protocol::Tcp)->backends().usable[0].address,
              ip("10.0.0.20"));
}

TEST(Reconciler, AFullStateLeavesOutWhatIsEqualAndWithdrawsWhatIsNotNamed) {
    Bench bench;
    const auto api = service("api", {external("192.0.2.81", 80)}, {"10.0.0.2"});
    ASSERT_TRUE(bench.send(Bench::full(1, {web(), api})).get());
    const auto* before = bench.last().services->find(ip("192.0.2.80"), 80, Protocol::Tcp)->service;
    const auto held = bench.last().services;  // keeps `before` alive
    const auto answer = bench.send(Bench::full(2, {web()})).get();
    EXPECT_EQ(answer->services, (std::vector<rpc::ServiceOutcome>{{key("api"), Kind::Removed, ""}}));
    EXPECT_EQ(bench.last().services->find(ip("192.0.2.80"), 80, Protocol::Tcp)->service, before)
        << "an equal service was touched";
}

TEST(Reconciler, AnInvalidServiceKeepsItsLastGoodVersion_GEN001) {
    Bench bench;
    ASSERT_TRUE(bench.send(Bench::full(1, {web()})).get());
    rpc::StateUpdate update = Bench::full(2, {service("api", {external("192.0.2.81", 80)}, {"10.0.0.2"})});
    update.invalid.emplace_back(key("web"), "service default/web/TCP: port 0 is not in 1-65535");
    ASSERT_TRUE(bench.send(std::move(update)).get());
    EXPECT_NE(bench.last().services->find(ip("192.0.2.80"), 80, Protocol::Tcp), nullptr);
    EXPECT_NE(bench.last().services->find(ip("192.0.2.81"), 80, Protocol::Tcp), nullptr);
    bench.reconciler.read(
        [](const ReconcilerState& state) { EXPECT_TRUE(state.invalid.contains(key("web"))); });
    ASSERT_TRUE(bench.send(Bench::delta(2, 3, {web("10.0.0.9")})).get());
    bench.reconciler.read([](const ReconcilerState& state) {
        EXPECT_TRUE(state.invalid.empty()) << "a later good version clears it";
    });
}

TEST(Reconciler, ARefusalIsAnsweredByNameAndNothingElseSuffers_GEN001) {
    Bench bench;
    const auto answer =
        bench.send(Bench::full(1, {service("a", {external("192.0.2.80", 80)}, {"10.0.0.1"}), web()})).get();
    ASSERT_TRUE(answer);
    ASSERT_EQ(answer->services.size(), 2U);
    EXPECT_EQ(answer->services[0].kind, Kind::Applied);
    EXPECT_EQ(answer->services[1].kind, Kind::Refused);
    EXPECT_EQ(answer->services[1].refusal.reason, model::kFrontendConflict);
    EXPECT_NE(answer->services[1].refusal.why.find("belongs to service default/a/TCP"), std::string::npos);
}

TEST(Reconciler, AddressesOfTheTwinsReachNodePortsSnatAndTheIdentity_NODEPORT008) {
    Bench bench;
    ASSERT_TRUE(bench.send(Bench::full(1, {service("np", {node_port(30080)}, {"10.0.0.1"})})).get());
    EXPECT_NE(bench.last().services->find(ip("192.0.2.1"), 30080, Protocol::Tcp), nullptr);
    EXPECT_EQ(bench.last().snat->addresses[0].address, ip("192.0.2.1"));
    std::promise<void> announced;
    bench.reconciler.set_identity_listener([&] { announced.set_value(); });
    bench.reconciler.mirrored(Bench::linux_with({"192.0.2.99"}), true);
    announced.get_future().get();
    EXPECT_NE(bench.last().services->find(ip("192.0.2.99"), 30080, Protocol::Tcp), nullptr);
    EXPECT_EQ(bench.last().services->find(ip("192.0.2.1"), 30080, Protocol::Tcp), nullptr);
    EXPECT_EQ(bench.last().snat->addresses[0].address, ip("192.0.2.99"));
    bench.reconciler.read([](const ReconcilerState& state) {
        EXPECT_EQ(state.identity.addresses,
                  (std::vector<model::PortAddress>{{"pen0", ip("192.0.2.99"), 24, false}}));
    });
    bench.reconciler.set_identity_listener(nullptr);
}

TEST(Reconciler, RoutesReachTheIdentityAndAreAnnouncedWhereTheyDiffer_NODEPORT009) {
    Bench bench;
    size_t announced = 0;
    bench.reconciler.set_identity_listener([&] { ++announced; });
    auto state = std::make_shared<drivers::MirroredState>(*Bench::linux_with({"192.0.2.1"}));
    state->routes = {{.destination = Prefix::parse("10.244.0.0/16").value(),
                      .egress = {0},
                      .gateway = ip("192.0.2.5"),
                      .metric = 0}};
    bench.reconciler.mirrored(state, true);
    ASSERT_TRUE(bench.send(Bench::full(1, {})).get());
    state = std::make_shared<drivers::MirroredState>(*state);
    state->routes.push_back({.destination = Prefix::parse("0.0.0.0/0").value(),
                             .egress = {0},
                             .gateway = ip("192.0.2.5"),
                             .metric = 0});
    bench.reconciler.mirrored(state, true);
    ASSERT_TRUE(bench.send(Bench::full(2, {})).get());
    // A message is answered before listeners are called for its publication. The third message is processed
    // after that.
    ASSERT_TRUE(bench.send(Bench::full(3, {})).get());
    bench.reconciler.set_identity_listener(nullptr);
    EXPECT_EQ(announced, 1U);
    bench.reconciler.read([](const ReconcilerState& now) {
        EXPECT_EQ(now.identity.routed_prefixes, std::vector{Prefix::parse("10.244.0.0/16").value()});
    });
}

TEST(Reconciler, NeighbourStatesAreForReadersAndPublishNothing) {
    Bench bench;
    auto state = std::make_shared<drivers::MirroredState>(*Bench::linux_with({"192.0.2.1"}));
    state->neighbours.push_back(
        {.id = {1}, .port = {0}, .address = ip("192.0.2.5"), .state = route::NeighbourState::Stale});
    bench.reconciler.mirrored(state, false);
    bench.reconciler.read([](const ReconcilerState& now) { EXPECT_EQ(now.mirror->neighbours.size(), 1U); });
    ASSERT_TRUE(bench.send(Bench::full(1, {})).get());
    EXPECT_EQ(bench.publications(), 1U);
}

TEST(Reconciler, WhatArrivesAfterTheStopIsAnsweredUnavailable) {
    Bench bench;
    bench.reconciler.stop();
    EXPECT_EQ(bench.send(Bench::full(1, {})).get().error().code, Errc::Unavailable);
    EXPECT_EQ(bench.publications(), 0U);
}

model::Service draining_web(const std::vector<std::string>& endpoints,
                            std::optional<uint32_t> drain_timeout_s) {
    auto out = service("web", {external("192.0.2.80", 80)}, endpoints);
    out.drain_timeout_s = drain_timeout_s;
    return out;
}

TEST(Reconciler, FlowOrdersTravelWithTheStateThatCausesThem_DRAIN004_GEN007) {
    Bench bench;
    ASSERT_TRUE(bench.send(Bench::full(1, {draining_web({"10.0.0.1", "10.0.0.2", "10.0.0.3"}, 0)})).get());
    EXPECT_TRUE(bench.last().flow_orders->orders.empty());
    const auto* row = bench.last().services->find(ip("192.0.2.80"), 80, Protocol::Tcp);
    const BackendId first = row->backends().usable[0].id, second = row->backends().usable[1].id;
    ASSERT_TRUE(bench.send(Bench::delta(1, 2, {draining_web({"10.0.0.2", "10.0.0.3"}, 0)})).get());
    EXPECT_EQ(bench.last().flow_orders->first, 1U);
    EXPECT_EQ(bench.last().flow_orders->orders, (std::vector<conn::FlowOrder>{{first, {}, 0}}));
    // Not finished by all workers: it stays, with its number.
    ASSERT_TRUE(bench.send(Bench::delta(2, 3, {draining_web({"10.0.0.3"}, 0)})).get());
    EXPECT_EQ(bench.last().flow_orders->first, 1U);
    EXPECT_EQ(bench.last().flow_orders->orders,
              (std::vector<conn::FlowOrder>{{first, {}, 0}, {second, {}, 0}}));
    bench.orders_done = 1;
    ASSERT_TRUE(bench.send(Bench::delta(3, 4, {})).get());
    EXPECT_EQ(bench.last().flow_orders->first, 2U);
    EXPECT_EQ(bench.last().flow_orders->orders, (std::vector<conn::FlowOrder>{{second, {}, 0}}));
    bench.orders_done = 2;
    ASSERT_TRUE(bench.send(Bench::delta(4, 5, {draining_web({"10.0.0.4"}, 0)})).get());
    EXPECT_EQ(bench.last().flow_orders->first, 3U);
    EXPECT_EQ(bench.last().flow_orders->orders.size(), 1U);
}

TEST(Reconciler, WakesWhenADrainIsOver_DRAIN004) {
    Bench bench;
    ASSERT_TRUE(bench.send(Bench::full(1, {draining_web({"10.0.0.1", "10.0.0.2"}, 300)})).get());
    ASSERT_TRUE(bench.send(Bench::delta(1, 2, {draining_web({"10.0.0.2"}, 300)})).get());
    EXPECT_TRUE(bench.last().flow_orders->orders.empty());
    bench.pass(299);
    ASSERT_TRUE(bench.send(Bench::delta(2, 3, {})).get());  // the thread has completed its work at 299 s
    EXPECT_TRUE(bench.last().flow_orders->orders.empty());
    const size_t before = bench.publications();
    bench.pass(1);
    bench.wait_for_publications(before + 1);
    EXPECT_EQ(bench.last().flow_orders->orders.size(), 1U);
    EXPECT_NE(bench.last().services->find(ip("192.0.2.80"), 80, Protocol::Tcp), nullptr);
}

TEST(Reconciler, AnEqualFullStateAndAStartFromTheFileEndNoFlow_UDP005) {
    auto dns = service("web", {external("192.0.2.80", 53)}, {"10.0.0.1"});
    dns.key.protocol = Protocol::Udp;
    LastGood last_good;
    last_good.state = {{"sync", 7}, desired({dns}), {}};
    Bench bench("", std::move(last_good));
    EXPECT_TRUE(bench.initial->flow_orders->orders.empty());
    ASSERT_TRUE(bench.send(Bench::full(8, {dns})).get());
    EXPECT_TRUE(bench.last().flow_orders->orders.empty());
    dns.sets[0].endpoints[0].address = ip("10.0.0.2");
    ASSERT_TRUE(bench.send(Bench::full(9, {dns})).get());
    EXPECT_EQ(bench.last().flow_orders->orders.size(), 1U) << "the file's endpoint had flows since";
}

// Bench starts the thread; flows of a former process are adopted before.
TEST(Reconciler, FlowsOfAFormerProcessEndAsAfterARemoval_DRAIN004_UDP001) {
    auto web = draining_web({"10.0.0.1"}, 300),
         dns = service("dns", {external("192.0.2.80", 53)}, {"10.0.0.1"});
    dns.key.protocol = Protocol::Udp;
    LastGood last_good;
    last_good.state = {{"sync", 7}, desired({web, dns}), {}};
    std::atomic<int64_t> clock_s = 1'000;
    std::promise<config::Snapshot> ordered;
    Reconciler reconciler(
        {.identity = {.gateway_name = "edge"},
         .snapshots = {.twins = {{"pen0", {ip("192.0.2.1")}}},
                       .snat_addresses = {},
                       .snat_ports = {},
                       .host_ephemeral = {},
                       .packets = {.answers_vip_echo = false, .passes_ip_options = false}},
         .state_file = "",
         .now = [&] { return std::chrono::steady_clock::time_point(std::chrono::seconds(clock_s)); }});
    const auto initial = reconciler.begin(std::move(last_good), Bench::linux_with({"192.0.2.1"}));
    const auto id_of = [&](L4Port port, Protocol protocol) {
        return initial->services->find(ip("192.0.2.80"), port, protocol)->service->id;
    };
    const auto gone = [&](ServiceId service, const char* endpoint, L4Port frontend) {
        return reconciler.keep_leaving(
            {.service = service, .endpoint = {ip(endpoint), 8080}, .frontend = {ip("192.0.2.80"), frontend}});
    };
    const BackendId kept = gone(id_of(80, Protocol::Tcp), "10.0.0.9", 80);
    EXPECT_TRUE(kept.is_set());
    EXPECT_FALSE(gone(id_of(53, Protocol::Udp), "10.0.0.9", 53).is_set()) << "UDP flows end at once";
    EXPECT_FALSE(gone(ServiceId{77}, "10.0.0.9", 80).is_set()) << "no Service has this number";
    EXPECT_FALSE(gone(id_of(80, Protocol::Tcp), "0.0.0.0", 80).is_set());
    EXPECT_FALSE(gone(id_of(80, Protocol::Tcp), "224.0.0.1", 80).is_set());
    reconciler.start([&](std::unique_ptr<config::Snapshot> next) {
        if (!next->flow_orders->orders.empty()) {
            ordered.set_value(*next);
        }
    });
    auto future = ordered.get_future();
    while (reconciler.progress().rounds == 0) {  // the drain begins with the first round
        std::this_thread::yield();
    }
    clock_s += 300;
    reconciler.look_at_clock();
    EXPECT_EQ(future.get().flow_orders->orders, (std::vector<conn::FlowOrder>{{kept, {}, 0}}));
    reconciler.stop();
}

TEST(Reconciler, IdleLimitsAreThoseOfTheServices_ANN03) {
    Bench bench;
    auto slow = web();
    slow.idle_timeout_s = 604'800;
    ASSERT_TRUE(
        bench.send(Bench::full(1, {slow, service("api", {external("192.0.2.81", 80)}, {"10.0.0.2"})})).get());
    const auto limit = [&](const char* address) {
        const config::Snapshot now = bench.last();
        return now.idle_limits->of(now.services->find(ip(address), 80, Protocol::Tcp)->service->id);
    };
    EXPECT_EQ(limit("192.0.2.80"), 604'800U);
    EXPECT_EQ(limit("192.0.2.81"), 0U);
    slow.idle_timeout_s = 60;
    ASSERT_TRUE(bench.send(Bench::delta(1, 2, {slow})).get());
    EXPECT_EQ(limit("192.0.2.80"), 60U);
    ASSERT_TRUE(bench.send(Bench::delta(2, 3, {web()})).get());
    EXPECT_EQ(limit("192.0.2.80"), 0U);
}

TEST(Reconciler, WhatTheOperatorDecidedOfPacketsReachesTheWorkers_ICMP007) {
    Bench bench;
    EXPECT_FALSE(bench.initial->packets.answers_vip_echo);
    ASSERT_TRUE(bench.send(Bench::full(1, {web()})).get());
    EXPECT_FALSE(bench.last().packets.answers_vip_echo);
}

TEST(Reconciler, TheEnvironmentReachesTheWorkers_ETP006_LB021) {
    Bench bench;
    rpc::StateUpdate update = Bench::full(1, {web()});
    update.environment =
        model::Environment{.pod_cidrs = {net("10.244.0.0/16")}, .rejects_closed_vip_ports = true};
    ASSERT_TRUE(bench.send(std::move(update)).get());
    EXPECT_TRUE(bench.last().rejects_closed_vip_ports);
    EXPECT_TRUE(bench.last().cluster_clients->are_inside(ip("10.244.1.1")));
    EXPECT_FALSE(bench.last().cluster_clients->were_outside(ip("10.244.1.1"))) << "nothing was served before";
    update = Bench::delta(1, 2, {});
    update.environment = model::Environment{.pod_cidrs = {net("10.245.0.0/16")}};
    ASSERT_TRUE(bench.send(std::move(update)).get());
    EXPECT_FALSE(bench.last().rejects_closed_vip_ports);
    EXPECT_FALSE(bench.last().cluster_clients->are_inside(ip("10.244.1.1")));
    EXPECT_TRUE(bench.last().cluster_clients->were_inside(ip("10.244.1.1"))) << "flows of it may live";
}

class ReconcilerFile : public testing::Test {
 protected:
    void SetUp() override {
        std::string name = testing::TempDir() + "penstock-reconciler-XXXXXX";
        ASSERT_NE(mkdtemp(name.data()), nullptr);
        folder_ = name;
        path_ = (folder_ / "last-good.pb").string();
    }
    void TearDown() override { std::filesystem::remove_all(folder_); }
    std::filesystem::path folder_;
    std::string path_;
};

TEST_F(ReconcilerFile, ARestartBeginsWithTheLastGoodStateAndDeltasMayBuildOnIt) {
    {
        Bench bench(path_);
        ASSERT_TRUE(
            bench.send(Bench::full(5, {web(), service("b", {external("192.0.2.80", 80)}, {"10.0.0.3"})}))
                .get());
    }
    auto last_good = read_last_good(path_);
    ASSERT_TRUE(last_good && *last_good);
    EXPECT_EQ((*last_good)->state.services.size(), 1U)
        << "a refused service port is no part of the last good state";
    Bench again("", std::move(**last_good));
    EXPECT_NE(again.initial->services->find(ip("192.0.2.80"), 80, Protocol::Tcp), nullptr);
    again.reconciler.read([](const ReconcilerState& state) {
        EXPECT_EQ(state.origin, StateOrigin::LastGood);
        EXPECT_EQ(state.applied, (rpc::StateVersion{"sync", 5}));
    });
    EXPECT_TRUE(again.send(Bench::delta(5, 6, {web("10.0.0.9")})).get());
}

TEST_F(ReconcilerFile, ARestartRestoresTheEnvironment_NODEPORT002_ETP006_HC006_LB021_PRESENCE005) {
    const model::Environment environment{
        .node_ports = {.primary_only = true, .node_addresses = {ip("192.0.2.1")}},
        .pod_cidrs = {net("10.244.0.0/16")},
        .rejects_closed_vip_ports = true,
        .node_eligible = false,
        .vips_withheld = "Node edge-1 is excluded"};
    {
        Bench bench(path_);
        rpc::StateUpdate update = Bench::full(5, {web()});
        update.environment = environment;
        ASSERT_TRUE(bench.send(std::move(update)).get());
    }
    auto last_good = read_last_good(path_);
    ASSERT_TRUE(last_good && *last_good);
    EXPECT_EQ((*last_good)->state.environment, environment);
    Bench again("", std::move(**last_good));
    EXPECT_TRUE(again.initial->rejects_closed_vip_ports);
    EXPECT_TRUE(again.initial->cluster_clients->are_inside(ip("10.244.1.1")));
    again.reconciler.read([&](const ReconcilerState& state) { EXPECT_EQ(state.environment, environment); });
}

TEST_F(ReconcilerFile, ChangesOfLinuxAloneWriteNoFile) {
    {
        Bench bench(path_);
        bench.reconciler.mirrored(Bench::linux_with({"192.0.2.7"}), true);
        while (bench.publications() == 0) {
            std::this_thread::yield();
        }
    }
    EXPECT_FALSE(std::filesystem::exists(path_));
}

// The two messages are combined into one compilation; the versions before and after it are equal.
TEST(Reconciler, AffinitySwitchedOffAndOnWithinOneCompilationStartsEmpty_AFF007) {
    Bench bench;
    model::Service sticky = web();
    sticky.affinity_timeout_s = 100;
    ASSERT_TRUE(bench.send(Bench::full(1, {sticky})).get());
    const auto epoch = [&] {
        return bench.last().services->find(ip("192.0.2.80"), 80, Protocol::Tcp)->service->affinity_epoch;
    };
    const uint32_t before = epoch();
    bench.hold();
    auto first =
        bench.send(Bench::delta(1, 2, {service("other", {external("192.0.2.81", 80)}, {"10.0.0.2"})}));
    while (bench.reconciler.read([](const ReconcilerState& state) { return state.accepted.number != 2; })) {
        std::this_thread::yield();  // the thread is at the gate, or will be: later messages are combined
    }
    auto off = bench.send(Bench::delta(2, 3, {web()}));
    auto on = bench.send(Bench::delta(3, 4, {sticky}));
    bench.let();
    ASSERT_TRUE(first.get() && off.get() && on.get());
    EXPECT_NE(epoch(), before);
    const uint32_t after = epoch();
    ASSERT_TRUE(bench.send(Bench::full(5, {sticky})).get());
    EXPECT_EQ(epoch(), after) << "a control plane that restarts sends it all again (AFF-011)";
}

}  // namespace reconciler_test
}  // namespace penstock::gateway
