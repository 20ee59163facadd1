// SPDX-License-Identifier: Apache-2.0
// The flow keeper, compared with a model of individual flows, on random histories of Services that change,
// lose and exchange frontends and endpoints, with few names, frontends and endpoints. The model determines
// for each flow whether its frontend and endpoint are still valid, and otherwise since when they are not.
// Workers only execute the flow orders.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "control/gateway/compile/compile.hpp"
#include "control/gateway/compile/flow_keeper.hpp"
#include "tests/support/prng.hpp"

namespace penstock::gateway {
namespace flow_keeper_property_test {

using std::chrono::seconds;
using Time = FlowKeeper::Time;
using Socket = std::pair<IpAddr, L4Port>;

struct Flow {
    model::ServiceKey key;
    InternedText uid;
    ServiceId service;
    BackendId backend;
    Socket place;
    Socket frontend;
    std::optional<Time> orphaned;  // computed by the model
    bool model_has = true;
    bool workers_have = true;
};

// One protocol of one Service object.
using ObjectKey = std::tuple<std::string, Protocol, std::string>;
ObjectKey object_of(const Flow& flow) {
    return {flow.key.name, flow.key.protocol, flow.uid.value()};
}

class World {
 public:
    World(test::Prng& random, IdMap ids) : random_(random), compiler_(std::move(ids)) {}

    void step() {
        pass_time(seconds(random_.below(12)));
        change();
        compiler_.run({desired_, {}, addresses_}, touched_);
        touched_.clear();
        drop_unbound();
        obey(keeper_.follow(compiler_.changes(), *compiler_.compiled(), compiler_.ids(), flows_of_, now_));
        note_timeouts();
        look_at_flows();
        compare();
        open_flows();
    }
    [[nodiscard]] std::map<std::string, uint64_t> met() const { return met_; }
    [[nodiscard]] size_t remembered() const { return keeper_.backends(); }
    void end_all() {
        flows_.clear();
        for (const auto& [key, service] : desired_) {
            touched_.push_back(key);
        }
        desired_ = {};
        for (int run = 0; run < 3; ++run) {
            compiler_.run({desired_, {}, addresses_}, touched_);
            obey(
                keeper_.follow(compiler_.changes(), *compiler_.compiled(), compiler_.ids(), flows_of_, now_));
        }
    }

 private:
    // The reconciler wakes up at every deadline.
    void pass_time(seconds passed) {
        const Time until = now_ + passed;
        while (keeper_.deadline() && *keeper_.deadline() <= until) {
            ASSERT_GT(*keeper_.deadline(), now_) << "what is due is done";
            now_ = *keeper_.deadline();
            obey(keeper_.wake(compiler_.ids(), flows_of_, now_));
            ++met_["wake"];
            look_at_flows();
            compare();
        }
        now_ = until;
        look_at_flows();
        compare();
    }

    void change() {
        const std::string name(1, static_cast<char>('a' + random_.below(3)));
        Object& object = objects_[name];
        const bool has_new_settings = random_.one_in(4);
        if (has_new_settings) {
            object.uid = random_.one_in(3) ? "u" + std::to_string(random_.below(3)) : object.uid;
            object.drain = random_.one_in(3) ? std::nullopt
                                             : std::optional(static_cast<uint32_t>(random_.below(3) * 10));
        }
        for (const char* port : {"x", "y"}) {
            for (const Protocol protocol : {Protocol::Tcp, Protocol::Udp, Protocol::Sctp}) {
                const model::ServiceKey key{"default", name, port, protocol};
                const auto* present = desired_.get(key);
                const bool changes = random_.one_in(3);
                if (changes && random_.one_in(5)) {
                    desired_.erase(key);
                } else if (changes || (has_new_settings && present != nullptr)) {
                    model::Service next = present != nullptr ? **present : some_service(key);
                    if (changes) {
                        random_.one_in(2) ? (void)(next.sets = some_service(key).sets)
                                          : (void)(next.frontends = some_service(key).frontends);
                    }
                    next.uid = object.uid;
                    next.drain_timeout_s = object.drain;
                    desired_.insert_or_assign(key, std::make_shared<const model::Service>(std::move(next)));
                } else {
                    continue;
                }
                touched_.push_back(key);
            }
        }
        if (random_.one_in(8)) {
            addresses_.clear();
            for (uint8_t n = 1; n < 4; ++n) {
                if (random_.one_in(2)) {
                    addresses_.push_back({"pen0", IpAddr::v4(192, 0, 2, n), 24, true});
                }
            }
        }
    }
    model::Service some_service(const model::ServiceKey& key) {
        model::Service service{.key = key};
        service.sets.resize(2);
        for (model::BackendSet& set : service.sets) {
            for (uint8_t n = 1; n <= 4; ++n) {
                const IpAddr address = IpAddr::v4(10, 0, 0, n);
                const uint64_t what = random_.below(8);
                if (what < 4) {
                    set.endpoints.push_back({address, 8'080, static_cast<uint16_t>(what), "", ""});
                } else if (what < 6) {
                    set.excluded.push_back({address, 8'080,
                                            static_cast<model::Exclusion>(random_.below(model::kExclusions)),
                                            what == 4});
                }
            }
        }
        for (L4Port port = 80; port < 83; ++port) {
            if (random_.one_in(3)) {
                const bool is_node_port = random_.one_in(2);
                service.frontends.push_back(
                    {.cls = is_node_port ? lb::FrontendClass::NodePort : lb::FrontendClass::LoadBalancerIp,
                     .address = is_node_port ? IpAddr() : IpAddr::v4(192, 0, 2, 80),
                     .port = port,
                     .set = static_cast<uint8_t>(random_.below(2))});
            }
        }
        return service;
    }

    void open_flows() {
        std::vector<Flow> opened;
        compiler_.compiled()->table->for_each_row([&](const lb::FrontendRow& row) {
            const auto& usable = row.backends().usable;
            if (usable.empty() || !random_.one_in(2)) {
                return;
            }
            const lb::Backend& backend = usable[random_.below(usable.size())];
            const model::ServiceKey key = key_of(*row.service);
            opened.push_back({.key = key,
                              .uid = compiler_.compiled()->services.at(key).desired->uid,
                              .service = row.service->id,
                              .backend = backend.id,
                              .place = {backend.address, backend.port},
                              .frontend = {row.address, row.port},
                              .orphaned = {}});
        });
        flows_.insert(flows_.end(), opened.begin(), opened.end());
        // Some flows end by themselves.
        std::erase_if(flows_, [&](const Flow&) { return random_.one_in(flows_.size() > 200 ? 3 : 12); });
    }
    static model::ServiceKey key_of(const lb::Service& service) {
        return {service.namespace_name, service.name, service.port_name, service.protocol};
    }

    void obey(const std::vector<conn::FlowOrder>& orders) {
        for (const auto& order : orders) {
            for (Flow& flow : flows_) {
                if (flow.backend == order.backend &&
                    (order.frontend_port == 0 ||
                     flow.frontend == Socket{order.frontend, order.frontend_port})) {
                    flow.workers_have = false;
                }
            }
            ++met_[order.frontend_port == 0 ? "order for all" : "order for a frontend"];
        }
    }
    // Ids that now belong to another object: such flows are not compared.
    void drop_unbound() {
        met_["unbound"] += std::erase_if(flows_, [&](const Flow& flow) {
            const BackendKey* backend = compiler_.ids().backends.key_of(flow.backend);
            const model::ServiceKey* service = compiler_.ids().services.key_of(flow.service);
            return backend == nullptr || service == nullptr || *service != flow.key ||
                   *backend != BackendKey{flow.service, flow.place.first, flow.place.second, flow.uid};
        });
    }
    void note_timeouts() {
        for (const auto& [key, programmed] : compiler_.compiled()->services) {
            auto& seen = in_force_[key];
            if (std::exchange(seen, programmed.desired) != programmed.desired) {
                timeouts_[{key.name, key.protocol, programmed.desired->uid.value()}] =
                    programmed.desired->drain_timeout_s;
            }
        }
        std::erase_if(in_force_, [&](const auto& entry) {
            return !compiler_.compiled()->services.contains(entry.first);
        });
    }

    bool is_at_home(const Flow& flow) const {
        const auto* row =
            compiler_.compiled()->table->find(flow.frontend.first, flow.frontend.second, flow.key.protocol);
        if (row == nullptr || row->service->name != flow.key.name) {
            return false;
        }
        const model::Service& owner = *compiler_.compiled()->services.at(key_of(*row->service)).desired;
        if (owner.uid != flow.uid) {
            return false;
        }
        for (const auto& set : owner.sets) {
            for (const auto& endpoint : set.endpoints) {
                if (flow.place == Socket{endpoint.address, endpoint.port}) {
                    return true;
                }
            }
            for (const auto& endpoint : set.excluded) {
                if (flow.place == Socket{endpoint.address, endpoint.port} &&
                    endpoint.why != model::Exclusion::ForbiddenAddress &&
                    (endpoint.serving || flow.key.protocol != Protocol::Udp)) {
                    return true;
                }
            }
        }
        return false;
    }
    void look_at_flows() {
        for (Flow& flow : flows_) {
            if (is_at_home(flow)) {
                met_["came home"] += flow.orphaned && flow.model_has ? 1 : 0;
                flow.orphaned.reset();
                continue;
            }
            flow.orphaned = flow.orphaned.value_or(now_);
            const auto timeout = timeouts_.at(object_of(flow));
            const bool is_over = flow.key.protocol == Protocol::Udp
                                     ? true
                                     : timeout.has_value() && *flow.orphaned + seconds(*timeout) <= now_;
            flow.model_has = flow.model_has && !is_over;
        }
    }
    void compare() {
        for (const Flow& flow : flows_) {
            ASSERT_EQ(flow.workers_have, flow.model_has)
                << flow.key.to_string() << " " << flow.uid.value() << " to " << flow.place.first.to_string()
                << " by " << flow.frontend.first.to_string() << " " << flow.frontend.second;
        }
        std::erase_if(flows_, [](const Flow& flow) { return !flow.model_has; });
    }

    struct Object {
        std::string uid = "u0";
        std::optional<uint32_t> drain;
    };
    test::Prng& random_;
    Compiler compiler_;
    FlowKeeper keeper_;
    Time now_{seconds(1'000)};
    DesiredServices desired_;
    std::vector<model::ServiceKey> touched_;
    std::vector<model::PortAddress> addresses_;
    std::map<std::string, Object> objects_;
    std::map<model::ServiceKey, std::shared_ptr<const model::Service>> in_force_;
    std::map<ObjectKey, std::optional<uint32_t>> timeouts_;
    std::vector<Flow> flows_;
    FlowKeeper::FlowsOf flows_of_ = [this](BackendId id) {
        return static_cast<uint64_t>(std::ranges::count_if(
            flows_, [&](const Flow& flow) { return flow.backend == id && flow.workers_have; }));
    };
    std::map<std::string, uint64_t> met_;
};

TEST(FlowKeeperProperty,
     EndsEachFlowInItsTimeAndNoOther_UDP001_DRAIN001_DRAIN004_DRAIN007_GEN010_SVC016_SVC017) {
    test::Prng random;
    std::map<std::string, uint64_t> met;
    for (int round = 0; round < 120; ++round) {
        // Every second world reuses its ids continuously.
        World world(random, round % 2 == 0 ? IdMap() : IdMap(9, 24));
        for (int step = 0; step < 60; ++step) {
            world.step();
            if (testing::Test::HasFatalFailure()) {
                FAIL() << "round " << round << ", step " << step;
            }
        }
        world.end_all();
        ASSERT_EQ(world.remembered(), 0U) << "without Services and flows nothing is remembered";
        for (const auto& [what, count] : world.met()) {
            met[what] += count;
        }
    }
    for (const char* what : {"wake", "order for all", "order for a frontend", "unbound", "came home"}) {
        EXPECT_GT(met[what], 0U) << what << " never happened: the test has lost its grip";
    }
}

}  // namespace flow_keeper_property_test
}  // namespace penstock::gateway
