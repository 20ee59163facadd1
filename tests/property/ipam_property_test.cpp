// SPDX-License-Identifier: Apache-2.0
// Random histories of pools, namespaces, Services and their status: the allocator agrees with a simple model
// after each batch, and its rules hold, however often it is restarted.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "control/ipam/allocator.hpp"
#include "control/ipam/pool_rules.hpp"
#include "tests/support/ipam_model.hpp"
#include "tests/support/prng.hpp"

namespace penstock::ipam::testing {
namespace ipam_property_test {

using test::IpamModel;
using test::Prng;
using Name = kube::ObjectName;

std::string text_of(const Name& name) {
    return name.namespace_name + "/" + name.name;
}

// "192.0.2.1 2001:db8::1 PoolExhausted"
std::string text_of(const std::vector<IpAddr>& addresses, const std::optional<RefusalReason>& refusal) {
    std::string text;
    for (const IpAddr& address : addresses) {
        text += address.to_string() + " ";
    }
    return text + (refusal ? to_string(*refusal) : "");
}

std::vector<IpAddr> addresses_of(const Allocation& allocation) {
    std::vector<IpAddr> result;
    for (const AllocatedAddress& entry : allocation.addresses) {
        result.push_back(entry.address);
    }
    return result;
}

// A cluster of few, small pools and few Services, so that all of them collide.
class History {
 public:
    explicit History(uint64_t seed) : prng_(seed) {}

    void run(int batches) {
        for (int batch = 0; batch < batches && !::testing::Test::HasFailure(); ++batch) {
            const uint64_t changes = prng_.one_in(5) ? prng_.between(4, 12) : prng_.between(1, 3);
            for (uint64_t i = 0; i < changes; ++i) {
                change();
            }
            apply();
            if (prng_.one_in(12)) {
                restart(prng_.one_in(2));
            }
        }
    }

 private:
    static constexpr const char* kSpaces[] = {"alpha", "beta", "gamma"};

    template <size_t N>
    const char* one_of(const char* const (&choices)[N]) {
        return choices[prng_.below(N)];
    }
    IpAddr address() {
        const auto last = static_cast<uint8_t>(prng_.below(12));
        if (prng_.one_in(3)) {
            return IpAddr::v6({0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last});
        }
        return IpAddr::v4(192, 0, 2, last == 11 ? uint8_t{255} : last);
    }

    // ---- changes ----

    void change() {
        switch (prng_.below(10)) {
            case 0:
                return change_pools();
            case 1:
                return change_labels();
            case 2:
            case 3:
                return echo(prng_.one_in(3));
            case 4:
                return add();
            case 5:
                return prng_.one_in(2) ? remove() : add();
            default:
                return change_service();
        }
    }

    void change_pools() {
        for (int attempt = 0; attempt < 20; ++attempt) {
            std::vector<Pool> pools;
            const uint64_t count = prng_.between(prng_.one_in(10) ? 0 : 1, 4);
            for (uint64_t i = 0; i < count; ++i) {
                pools.push_back(random_pool("p" + std::to_string(i)));
            }
            if (auto valid = validate(std::move(pools), {})) {
                pools_ = *valid;
                changes_.pools = std::move(*valid);
                return;
            }
        }
    }
    Pool random_pool(const std::string& name) {
        Pool pool{.name = name,
                  .auto_assign = !prng_.one_in(5),
                  .avoid_buggy_ips = prng_.one_in(4),
                  .priority = static_cast<int32_t>(prng_.below(3)),
                  .internal = prng_.one_in(6),
                  .disabled = prng_.one_in(8),
                  .reassign = prng_.one_in(4)};
        const uint64_t ranges = prng_.between(1, 3);
        for (uint64_t i = 0; i < ranges; ++i) {
            const IpAddr a = address();
            const IpAddr b = address();
            pool.ranges.push_back(a.family() == b.family() ? AddressRange{std::min(a, b), std::max(a, b)}
                                                           : AddressRange{a, a});
            if (pool.ranges.back().last == IpAddr::v4(192, 0, 2, 255)) {
                pool.ranges.back().first = pool.ranges.back().last;
            }
        }
        if (prng_.one_in(4)) {
            pool.namespaces = {one_of(kSpaces)};
        }
        if (prng_.one_in(5)) {
            pool.namespace_selector = annotations::Selector::parse("tier=gold").value();
        }
        if (prng_.one_in(5)) {
            pool.service_selector = annotations::Selector::parse("app=web").value();
        }
        pool.enforce = prng_.one_in(3) && (!pool.namespaces.empty() || pool.namespace_selector);
        for (uint64_t i = prng_.below(3); i > 0; --i) {
            const IpAddr address = prng_.one_in(2) ? pool.ranges.front().first : pool.ranges.back().last;
            pool.reservations.push_back({.address = address, .service = random_name()});
        }
        return pool;
    }
    void change_labels() {
        const std::string name = one_of(kSpaces);
        annotations::Labels labels;
        if (prng_.one_in(2)) {
            labels["tier"] = "gold";
        }
        labels_[name] = labels;
        changes_.namespaces[name] = prng_.one_in(2) || !labels.empty() ? std::optional(labels) : std::nullopt;
    }

    Name random_name() {
        return {.namespace_name = one_of(kSpaces), .name = "s" + std::to_string(prng_.below(4))};
    }
    void add() {
        const Name name = random_name();
        kube::Service service;
        service.meta = {.namespace_name = name.namespace_name,
                        .name = name.name,
                        .uid = "uid" + std::to_string(++uids_),
                        .creation_timestamp = "2026-01-01T00:00:1" + std::to_string(prng_.below(10)) + "Z"};
        service.type = "LoadBalancer";
        service.load_balancer_class = "penstock.io/gateway";
        service.ports = {{.port = static_cast<int64_t>(prng_.between(80, 82))}};
        service.selector = {{"app", "x"}};
        set_families(service);
        for (uint64_t i = prng_.below(4); i > 0; --i) {
            alter(service);
        }
        put(name, std::move(service));
    }
    void remove() {
        if (const auto found = random_service(); found != services_.end()) {
            changes_.services[found->first] = nullptr;
            services_.erase(found);
        }
    }
    void change_service() {
        if (const auto found = random_service(); found != services_.end()) {
            kube::Service service = found->second;
            alter(service);
            put(found->first, std::move(service));
        }
    }
    void put(const Name& name, kube::Service service) {
        changes_.services[name] = std::make_shared<const kube::Service>(service);
        services_[name] = std::move(service);
    }
    std::map<Name, kube::Service>::iterator random_service() {
        return services_.empty()
                   ? services_.end()
                   : std::next(services_.begin(), static_cast<std::ptrdiff_t>(prng_.below(services_.size())));
    }
    void annotate(kube::Service& service, const std::string& key, const std::string& value) {
        if (value.empty()) {
            service.meta.annotations.erase("penstock.io/" + key);
        } else {
            service.meta.annotations["penstock.io/" + key] = value;
        }
    }
    void set_families(kube::Service& service) {
        const bool six_first = prng_.one_in(3);
        service.ip_families = {six_first ? "IPv6" : "IPv4", six_first ? "IPv4" : "IPv6"};
        service.ip_family_policy = one_of({"SingleStack", "PreferDualStack", "RequireDualStack"});
        if (service.ip_family_policy == "SingleStack" ||
            (service.ip_family_policy[0] == 'P' && prng_.one_in(4))) {
            service.ip_families.resize(1);
        }
    }
    void alter(kube::Service& service) {
        switch (prng_.below(12)) {
            case 0: {
                std::string list = address().to_string();
                list += prng_.one_in(3) ? "," + address().to_string() : "";
                return annotate(service, "load-balancer-ips", prng_.one_in(8) ? "rubbish" : list);
            }
            case 1:
                return annotate(service, "load-balancer-ips", "");
            case 2:
                service.load_balancer_ip = prng_.one_in(2) ? "" : address().to_string();
                return;
            case 3:
                return annotate(service, "address-pool",
                                prng_.one_in(3) ? "" : one_of({"p0", "p1", "p2", "p9"}));
            case 4:
                return annotate(service, "allow-shared-ip", one_of({"", "k", "k", "l"}));
            case 5:
                return prng_.one_in(2) ? annotate(service, "allow-shared-ip", "k")
                                       : annotate(service, "allow-shared-ip-namespaces",
                                                  one_of({"", "*", "*", "alpha,beta", "gamma"}));
            case 6:
                return annotate(service, "scope", prng_.one_in(3) ? "internal" : "");
            case 7:
                return set_families(service);
            case 8:
                service.ports.front().port = static_cast<int64_t>(prng_.between(80, 82));
                service.ports.front().protocol = one_of({"TCP", "UDP"});
                return;
            case 9:
                service.external_traffic_policy = one_of({"Cluster", "Local"});
                service.selector = {{"app", one_of({"x", "y"})}};
                return;
            case 10:
                service.meta.labels = {{"app", one_of({"web", "mail"})}};
                return;
            default:
                return alter_rarely(service);
        }
    }
    void alter_rarely(kube::Service& service) {
        switch (prng_.below(3)) {
            case 0:
                service.type = one_of({"LoadBalancer", "LoadBalancer", "ClusterIP"});
                return;
            case 1:
                service.load_balancer_class =
                    one_of({"penstock.io/gateway", "penstock.io/gateway", "other.io/lb"});
                return;
            default:  // another controller, or a leftover
                service.ingress.clear();
                service.conditions.clear();
                for (uint64_t i = prng_.below(3); i > 0; --i) {
                    service.ingress.push_back({.ip = address().to_string()});
                }
                if (prng_.one_in(6)) {
                    service.ingress.push_back({.ip = "203.0.113.7"});
                }
                if (prng_.one_in(6)) {
                    service.ingress.push_back({.hostname = "lb.example.org"});
                }
                if (prng_.one_in(3)) {
                    service.conditions = kube::marker(one_of({"True", "False"}));
                }
        }
    }

    // Writes the allocation of one or of all Services to the status, as the writer of the status does: it
    // leaves what is not marked as Penstock's own.
    void echo(bool all) {
        for (auto& [name, known] : services_) {
            if (!all && !prng_.one_in(4)) {
                continue;
            }
            const Allocation* allocation = allocator_.find(name);
            kube::Service service = known;
            const bool ours = kube::has_marker(service);
            const bool has_addresses = allocation != nullptr && !allocation->addresses.empty();
            if (!has_addresses && !ours) {
                continue;
            }
            service.ingress.clear();
            if (has_addresses) {
                for (const AllocatedAddress& entry : allocation->addresses) {
                    service.ingress.push_back({.ip = entry.address.to_string()});
                }
            }
            service.conditions = kube::marker(has_addresses ? "True" : "False");
            put(name, std::move(service));
        }
    }

    // ---- checks ----

    void apply() {
        const std::map<Name, Allocation> before = allocations();
        const std::vector<Name> changed = allocator_.apply(changes_);
        model_.apply(changes_);
        changes_ = {};
        const std::map<Name, Allocation> after = allocations();
        expect_model(after);
        expect_changed(before, after, changed);
        expect_rules(before, after);
        expect_usage(after);
    }

    void restart(bool after_echo) {
        if (after_echo) {
            echo(true);
            apply();
        }
        const std::map<Name, Allocation> before = allocations();
        allocator_ = Allocator(semantics::Policy{});
        model_.restart();
        changes_.pools = pools_;
        for (const auto& [name, labels] : labels_) {
            changes_.namespaces[name] = labels;
        }
        for (const auto& [name, service] : services_) {
            changes_.services[name] = std::make_shared<const kube::Service>(service);
        }
        if (after_echo) {
            allocator_.apply(changes_);
            const std::map<Name, Allocation> after = allocations();
            for (const auto& [name, allocation] : before) {
                // The messages as well: none was out of date.
                EXPECT_TRUE(after.contains(name) && after.at(name) == allocation)
                    << "moved by a restart: " << text_of(name) << ": " << shown(allocation) << ", then "
                    << (after.contains(name) ? shown(after.at(name)) : "-");
            }
            allocator_ = Allocator(semantics::Policy{});
        }
        apply();
    }

    static std::string shown(const Allocation& allocation) {
        return text_of(addresses_of(allocation),
                       allocation.refusal ? std::optional(allocation.refusal->reason) : std::nullopt) +
               " \"" + (allocation.refusal ? allocation.refusal->message : "") + "\"";
    }

    std::map<Name, Allocation> allocations() const {
        std::map<Name, Allocation> result;
        for (const char* space : kSpaces) {
            for (int i = 0; i < 4; ++i) {
                const Name name{.namespace_name = space, .name = "s" + std::to_string(i)};
                if (const Allocation* allocation = allocator_.find(name)) {
                    result.emplace(name, *allocation);
                }
            }
        }
        return result;
    }

    void expect_model(const std::map<Name, Allocation>& after) {
        ASSERT_EQ(after.size(), model_.outcomes().size());
        for (const auto& [name, outcome] : model_.outcomes()) {
            ASSERT_TRUE(after.contains(name)) << text_of(name);
            const Allocation& allocation = after.at(name);
            const auto reason = allocation.refusal ? std::optional(allocation.refusal->reason) : std::nullopt;
            EXPECT_EQ(text_of(addresses_of(allocation), reason), text_of(outcome.addresses, outcome.refusal))
                << text_of(name) << ": " << shown(allocation);
            EXPECT_FALSE(allocation.addresses.empty() && !allocation.refusal) << text_of(name);
            for (const AllocatedAddress& entry : allocation.addresses) {
                const Pool* pool = model_.pool_with(entry.address);
                EXPECT_EQ(entry.pool, pool == nullptr ? "" : pool->name) << text_of(name);
            }
        }
    }

    static void expect_changed(const std::map<Name, Allocation>& before,
                               const std::map<Name, Allocation>& after, const std::vector<Name>& changed) {
        std::set<Name> expected;
        for (const auto& [name, allocation] : before) {
            if (!after.contains(name) || after.at(name) != allocation) {
                expected.insert(name);
            }
        }
        for (const auto& [name, allocation] : after) {
            if (!before.contains(name)) {
                expected.insert(name);
            }
        }
        EXPECT_EQ(changed, std::vector<Name>(expected.begin(), expected.end()));
    }

    // No address twice unless the rules of sharing allow it; a new address is in a pool, and neither a
    // reservation nor a fence is passed.
    void expect_rules(const std::map<Name, Allocation>& before,
                      const std::map<Name, Allocation>& after) const {
        std::map<IpAddr, std::vector<Name>> users;
        for (const auto& [name, allocation] : after) {
            for (const AllocatedAddress& entry : allocation.addresses) {
                const IpAddr& address = entry.address;
                for (const Name& other : users[address]) {
                    EXPECT_TRUE(IpamModel::may_share(model_.service(name), model_.service(other)))
                        << address.to_string() << ": " << text_of(name) << " and " << text_of(other);
                }
                users[address].push_back(name);
                if (had(before, name, address) || shows(name, address)) {
                    continue;
                }
                const Pool* pool = model_.pool_with(address);
                ASSERT_NE(pool, nullptr) << text_of(name) << " " << address.to_string();
                EXPECT_TRUE(model_.is_permitted(model_.service(name), *pool)) << text_of(name);
                EXPECT_FALSE(pool->disabled) << text_of(name);
                for (const Reservation& reservation : pool->reservations) {
                    EXPECT_TRUE(reservation.address != address || reservation.service == name)
                        << text_of(name) << " " << address.to_string();
                }
            }
        }
    }
    static bool had(const std::map<Name, Allocation>& before, const Name& name, const IpAddr& address) {
        const auto found = before.find(name);
        return found != before.end() && std::ranges::count(addresses_of(found->second), address) > 0;
    }
    bool shows(const Name& name, const IpAddr& address) const {
        const kube::Service& service = model_.service(name);
        return kube::has_marker(service) &&
               std::ranges::count(service.ingress, address.to_string(), &kube::LoadBalancerIngress::ip) > 0;
    }

    void expect_usage(const std::map<Name, Allocation>& after) const {
        std::map<std::pair<std::string, IpFamily>, std::set<IpAddr>> used;
        for (const auto& [name, allocation] : after) {
            for (const AllocatedAddress& entry : allocation.addresses) {
                used[{entry.pool, entry.address.family()}].insert(entry.address);
            }
        }
        const std::vector<PoolUsage> usage = allocator_.usage();
        ASSERT_EQ(usage.size(), pools_.size());
        for (const PoolUsage& entry : usage) {
            EXPECT_EQ(entry.v4.used, (used[{entry.pool, IpFamily::V4}].size())) << entry.pool;
            EXPECT_EQ(entry.v6.used, (used[{entry.pool, IpFamily::V6}].size())) << entry.pool;
            EXPECT_LE(entry.v4.free, entry.v4.total) << entry.pool;
            EXPECT_LE(entry.v6.free, entry.v6.total) << entry.pool;
        }
    }

    Prng prng_;
    Allocator allocator_{semantics::Policy{}};
    IpamModel model_;
    std::vector<Pool> pools_;
    std::map<std::string, annotations::Labels> labels_;
    std::map<Name, kube::Service> services_;
    Changes changes_;
    int uids_ = 0;
};

TEST(IpamProperty, IncrementalResultEqualsTheModel_LB007_LB008_LB011_LB022_LB023_DUAL004) {
    Prng prng;
    for (int i = 0; i < 400 && !HasFailure(); ++i) {
        const uint64_t seed = prng.next();
        SCOPED_TRACE("history " + std::to_string(i));
        History(seed).run(40);
    }
}

}  // namespace ipam_property_test
}  // namespace penstock::ipam::testing
