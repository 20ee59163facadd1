// SPDX-License-Identifier: Apache-2.0
// Random histories of three writers of addresses that use one cluster. Views lag behind, requests arrive up
// to a minute late, responses are lost, processes freeze and restart. No address is ever given twice, and
// none moves.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/ipam_model.hpp"
#include "tests/support/model_writer.hpp"
#include "tests/support/prng.hpp"

namespace penstock::sync::testing {
namespace address_writer_delays_property_test {

using std::chrono::milliseconds;
using std::chrono::seconds;
using test::IpamModel;
using test::ModelCluster;
using test::ModelNetwork;
using test::ModelWriter;
using test::Prng;
using Name = kube::ObjectName;

std::set<IpAddr> addresses_of(const kube::Service& service) {
    std::set<IpAddr> addresses;
    for (const kube::LoadBalancerIngress& entry : service.ingress) {
        if (const auto address = IpAddr::parse(entry.ip)) {
            addresses.insert(*address);
        }
    }
    return addresses;
}

const kube::Condition* condition_of(const kube::Service& service, std::string_view type) {
    const auto found = std::ranges::find(service.conditions, type, &kube::Condition::type);
    return found == service.conditions.end() ? nullptr : &*found;
}

std::string text_of(const kube::Service& service) {
    std::string text = service.meta.name + " (" + service.meta.uid + "):";
    for (const IpAddr& address : addresses_of(service)) {
        text += " " + address.to_string();
    }
    const kube::Condition* allocated = condition_of(service, kube::kAllocatedCondition);
    return text + (allocated == nullptr ? "" : " " + allocated->reason + ": " + allocated->message);
}

class History {
 public:
    explicit History(uint64_t seed) : prng_(seed), network_(cluster_) {
        cluster_.on_status = [this](const kube::Service& before, const kube::Service& after) {
            check_write(before, after);
        };
        network_.path = [this](const kube::Request& request) { return random_path(request); };
        edit_pools();
        for (size_t i = 0; i < writers_.size(); ++i) {
            restart(i);
        }
    }

    void run(int steps) {
        for (int i = 0; i < steps && !::testing::Test::HasFailure(); ++i) {
            if (prng_.one_in(6)) {
                edit();
            }
            if (prng_.one_in(40)) {
                frozen_until_[prng_.below(writers_.size())] = now_ + seconds(prng_.between(1, 60));
            }
            if (prng_.one_in(200)) {
                restart(prng_.below(writers_.size()));
            }
            step(milliseconds(prng_.between(1, prng_.one_in(10) ? 3000 : 600)));
        }
        settle();
        if (!::testing::Test::HasFailure()) {
            check_end();
        }
    }

 private:
    ModelNetwork::Path random_path(const kube::Request& request) {
        if (is_quiet_) {
            return {};
        }
        if (request.target.ends_with("/status") && prng_.one_in(12)) {
            return {.there = freeze_leader(), .back = {}, .is_response_lost = true};
        }
        const auto delay = [this] {
            return milliseconds(prng_.one_in(8)   ? prng_.below(60'000)
                                : prng_.one_in(6) ? prng_.below(6'000)
                                                  : prng_.below(300));
        };
        return {.there = delay(), .back = delay(), .is_response_lost = prng_.one_in(12)};
    }

    // The leader is frozen when it sends a request. Returns the delay of the request: another leader has the
    // Lease when it arrives.
    milliseconds freeze_leader() {
        for (size_t i = 0; i < writers_.size(); ++i) {
            if (writers_[i]->identity() == cluster_.holder()) {
                frozen_until_[i] = now_ + seconds(60);
            }
        }
        return milliseconds(prng_.between(16'000, 40'000));
    }

    void restart(size_t index) {
        writers_[index].reset();
        writers_[index] = std::make_unique<ModelWriter>(cluster_, network_, now_,
                                                        "process-" + std::to_string(++processes_));
        writers_[index]->deliver_all();
        frozen_until_[index] = now_;
    }

    void step(milliseconds by) {
        now_ += by;
        network_.execute(now_);
        // The worst time for late writes is directly after an address was given.
        if (std::exchange(has_given_, false) && prng_.one_in(2)) {
            network_.hasten(now_);
            network_.execute(now_);
        }
        for (size_t i = 0; i < writers_.size(); ++i) {
            if (frozen_until_[i] > now_) {
                continue;
            }
            ModelWriter& writer = *writers_[i];
            if (is_quiet_ || prng_.one_in(3)) {
                writer.deliver(is_quiet_ ? SIZE_MAX : prng_.between(1, 4));
            }
            if (writer.is_listing() && (is_quiet_ || prng_.one_in(2))) {
                writer.finish_list();
            } else if (writer.wants_list() && (is_quiet_ || prng_.one_in(2))) {
                writer.begin_list();
            }
            if (prng_.one_in(20) && !cluster_.services().empty()) {
                report(writer);
            }
            writer.advance();
        }
    }
    void settle() {
        is_quiet_ = true;
        frozen_until_.fill(now_);
        for (int i = 0; i < 800 && !::testing::Test::HasFailure(); ++i) {
            step(milliseconds(500));
        }
    }

    // A gateway of this control plane serves a Service.
    void report(ModelWriter& writer) {
        const auto& name = std::next(cluster_.services().begin(),
                                     static_cast<std::ptrdiff_t>(prng_.below(cluster_.services().size())))
                               ->first;
        writer.writer.board().report("gateway", name, true);
        reported_.insert(name);
    }

    // ---- edits of users ----
    // None of them permits a change of an address, except a Service that leaves type LoadBalancer.

    void edit() {
        const Name name{.namespace_name = "default", .name = "s" + std::to_string(prng_.below(6))};
        const kube::Service* present = cluster_.find(name);
        if (prng_.one_in(6)) {
            return edit_pools();
        }
        if (present == nullptr) {
            return create(name);
        }
        kube::Service service = *present;
        if (prng_.one_in(2)) {
            service.meta.labels["edit"] = std::to_string(prng_.below(100));
            return cluster_.put(service);
        }
        if (prng_.one_in(4) && service.ingress.empty() == kube::has_marker(service)) {
            return;
        }
        if (prng_.one_in(4)) {
            service.type = "ClusterIP";
            return cluster_.put(service);
        }
        cluster_.remove(name);
    }
    void create(const Name& name) {
        kube::Service service;
        service.meta.namespace_name = name.namespace_name;
        service.meta.name = name.name;
        service.meta.uid = "uid-" + std::to_string(++uids_);
        service.meta.creation_timestamp = std::to_string(2000 + prng_.below(20));
        service.type = "LoadBalancer";
        service.load_balancer_class = "penstock.io/gateway";
        service.ip_families = {"IPv4"};
        service.ip_family_policy = "SingleStack";
        service.ports = {{.name = {},
                          .protocol = "TCP",
                          .port = 80 + static_cast<int64_t>(prng_.below(2)),
                          .node_port = 30'000,
                          .target_port = {}}};
        if (prng_.one_in(3)) {
            service.meta.annotations["penstock.io/allow-shared-ip"] = "key";
        }
        if (prng_.one_in(3)) {
            service.meta.annotations["penstock.io/load-balancer-ips"] =
                "192.0.2." + std::to_string(prng_.between(1, 3));
        }
        if (prng_.one_in(8)) {
            service.ingress.push_back({.ip = "198.51.100.7", .hostname = {}, .ip_mode = {}, .ports = {}});
        }
        cluster_.put(service);
    }
    void edit_pools() {
        const auto last = static_cast<uint8_t>(prng_.between(1, 3));
        ipam::Pool pool{.name = "pool"};
        pool.ranges = {{IpAddr::v4(192, 0, 2, 1), IpAddr::v4(192, 0, 2, last)}};
        pool.disabled = prng_.one_in(6);
        if (prng_.one_in(6)) {
            pool.namespaces = {"other"};
        }
        cluster_.put_pool(pool);
    }

    // ---- checks ----

    void check_write(const kube::Service& before, const kube::Service& after) {
        const auto old = addresses_of(before);
        const auto fresh = addresses_of(after);
        for (const IpAddr& address : fresh) {
            if (!old.contains(address)) {
                check_single(after, address);
                has_given_ = true;
            }
        }
        if (!kube::has_marker(before) || before.type == "LoadBalancer") {
            EXPECT_TRUE(std::ranges::includes(fresh, old))
                << text_of(before) << " becomes " << text_of(after);
        }
        if (after.meta.name.empty() || condition_of(before, kube::kProgrammedCondition) != nullptr) {
            return;
        }
        if (condition_of(after, kube::kProgrammedCondition) != nullptr) {
            EXPECT_TRUE(reported_.contains({after.meta.namespace_name, after.meta.name})) << text_of(after);
        }
    }
    void check_single(const kube::Service& service, const IpAddr& address) {
        for (const auto& [name, other] : cluster_.services()) {
            if (other.object->meta.uid == service.meta.uid || other.object->type != "LoadBalancer" ||
                !addresses_of(*other.object).contains(address)) {
                continue;
            }
            EXPECT_TRUE(IpamModel::may_share(service, *other.object))
                << address.to_string() << " is given to " << text_of(service) << ", and used by "
                << text_of(*other.object);
        }
    }
    // Every Service has what a new allocator would give to it.
    void check_end() {
        IpamModel model;
        ipam::Changes all;
        all.pools.emplace();
        for (const auto& [name, pool] : cluster_.pools()) {
            all.pools->push_back(pool->pool);
        }
        for (const auto& [name, service] : cluster_.services()) {
            all.services.emplace(name, service.object);
        }
        model.apply(all);
        for (const auto& [name, service] : cluster_.services()) {
            const auto found = model.outcomes().find(name);
            const kube::Condition* allocated = condition_of(*service.object, kube::kAllocatedCondition);
            if (found == model.outcomes().end()) {
                EXPECT_EQ(allocated, nullptr) << text_of(*service.object);
                continue;
            }
            const auto& expected = found->second;
            ASSERT_NE(allocated, nullptr) << text_of(*service.object);
            EXPECT_EQ(allocated->reason,
                      expected.addresses.empty() ? ipam::to_string(*expected.refusal) : "Allocated")
                << text_of(*service.object);
            if (!expected.addresses.empty()) {
                EXPECT_EQ(addresses_of(*service.object),
                          std::set<IpAddr>(expected.addresses.begin(), expected.addresses.end()))
                    << text_of(*service.object);
            }
        }
        EXPECT_EQ(
            std::ranges::count_if(writers_, [](const auto& each) { return each->phase() == "assigning"; }),
            1);
    }

    Prng prng_;
    ModelCluster cluster_;
    ModelNetwork network_;
    ModelNetwork::Time now_{seconds(1'000)};
    std::array<ModelNetwork::Time, 3> frozen_until_{};
    std::set<Name> reported_;
    bool is_quiet_ = false;
    bool has_given_ = false;  // a Service got an address since the last step
    int uids_ = 0;
    int processes_ = 0;
    std::array<std::unique_ptr<ModelWriter>, 3> writers_;
};

TEST(AddressWriterDelaysProperty,
     NoAddressIsGivenTwiceOrMoves_LB008_LB013_LB014_STATUS003_PRESENCE001_LEASE004) {
    Prng prng;
    for (int i = 0; i < 400 && !HasFailure(); ++i) {
        SCOPED_TRACE("history " + std::to_string(i));
        History(prng.next()).run(700);
    }
}

}  // namespace address_writer_delays_property_test
}  // namespace penstock::sync::testing
