// SPDX-License-Identifier: Apache-2.0
#include "control/ipam/allocator.hpp"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "control/ipam/choice.hpp"
#include "control/ipam/pool_table.hpp"
#include "control/ipam/refusal_text.hpp"
#include "control/ipam/request.hpp"
#include "control/ipam/users.hpp"
#include "control/semantics/load_balancer.hpp"

namespace penstock::ipam {

class Allocator::State {
 public:
    explicit State(semantics::Policy policy) : policy_(std::move(policy)) {}
    State(const State&) = delete;
    State& operator=(const State&) = delete;

    std::vector<kube::ObjectName> apply(const Changes& changes);
    [[nodiscard]] const Allocation* find(const kube::ObjectName& service) const;
    [[nodiscard]] std::vector<PoolUsage> usage() const;

 private:
    struct InOrder {
        bool operator()(const User* a, const User* b) const {
            return std::tie(a->step, a->request.age) < std::tie(b->step, b->request.age);
        }
    };

    // Inputs.
    void change_pools(const std::vector<Pool>& pools);
    void change_namespaces(const Changes& changes);
    void hold(const kube::ObjectName& name, const std::vector<IpAddr>& addresses);
    void change_service(const kube::ObjectName& name, const kube::Service* service);
    void remove_user(const kube::ObjectName& name);
    const annotations::Labels& labels_of(const std::string& namespace_name) const;

    // The queue of Services to decide on, in the order of steps and ages.
    void enqueue(User& user, Step step);
    void enqueue_for_decision(User& user);
    void enqueue_again(User& user);
    void dequeue(User& user);
    void work_off_queue();
    [[nodiscard]] bool facts_are_unchanged(const User& user);

    // Steps.
    void claim(User& user);
    void decide(User& user);
    void decide_incomplete(User& user);

    // Changes of the addresses of a Service.
    void give(User& user, const std::vector<IpAddr>& addresses);
    void take_all(User& user);
    void take_uncovered(User& user);
    void set_aside(User& user);
    void update_allocation(User& user, std::optional<Refusal> refusal);

    semantics::Policy policy_;
    PoolTable pools_;
    Users uses_;
    std::map<kube::ObjectName, User> users_;
    std::map<kube::ObjectName, User> holders_;  // unreadable: neither in the queue nor decided on
    std::map<std::string, annotations::Labels> namespaces_;
    Chooser chooser_{pools_, uses_, [this](const std::string& name) -> const annotations::Labels& {
                         return labels_of(name);
                     }};
    std::set<User*, InOrder> queue_;
    // The allocation before this batch of each Service whose allocation was set in it.
    std::map<kube::ObjectName, std::optional<Allocation>> before_;
    const Users::Wake wake_ = [this](User& user) { enqueue_again(user); };
};

// ---- inputs ----

std::vector<kube::ObjectName> Allocator::State::apply(const Changes& changes) {
    if (changes.pools) {
        change_pools(*changes.pools);
    }
    change_namespaces(changes);
    for (const auto& [name, addresses] : changes.held) {
        hold(name, addresses);
    }
    for (const auto& [name, service] : changes.services) {
        change_service(name, service.get());
    }
    work_off_queue();
    std::vector<kube::ObjectName> changed;
    for (const auto& [name, before] : before_) {
        const Allocation* now = find(name);
        if (before.has_value() != (now != nullptr) || (before && *before != *now)) {
            changed.push_back(name);
        }
    }
    before_.clear();
    return changed;
}

// Free addresses, order and permissions may all be different: every Service claims its addresses again.
void Allocator::State::change_pools(const std::vector<Pool>& pools) {
    PoolTable table(pools);
    if (table.pools() == pools_.pools()) {
        return;
    }
    for (auto& [name, user] : users_) {
        uses_.unwatch(user);
        user.previous = std::exchange(user.addresses, {});
    }
    uses_.clear();
    pools_ = std::move(table);
    for (auto& [name, holder] : holders_) {
        give(holder, std::exchange(holder.addresses, {}));
    }
    for (auto& [name, user] : users_) {
        enqueue(user, Step::Kept);
    }
}

void Allocator::State::change_namespaces(const Changes& changes) {
    for (const auto& [name, labels] : changes.namespaces) {
        if (labels_of(name) == labels.value_or(annotations::Labels())) {
            continue;
        }
        if (labels) {
            namespaces_.insert_or_assign(name, *labels);
        } else {
            namespaces_.erase(name);
        }
        // Permissions are facts of new addresses only: a Service that has all of its addresses keeps them.
        for (auto user = users_.lower_bound({.namespace_name = name, .name = ""});
             user != users_.end() && user->first.namespace_name == name; ++user) {
            user->second.must_decide = true;
            enqueue_again(user->second);
        }
    }
}

void Allocator::State::hold(const kube::ObjectName& name, const std::vector<IpAddr>& addresses) {
    User& holder = holders_[name];
    holder.request.age.service = name;
    holder.is_unreadable = true;
    take_all(holder);
    give(holder, addresses);
    if (addresses.empty()) {
        holders_.erase(name);
    }
}

void Allocator::State::change_service(const kube::ObjectName& name, const kube::Service* service) {
    auto found = users_.find(name);
    if (service == nullptr || service->type != "LoadBalancer" || !semantics::is_owned(*service, policy_)) {
        remove_user(name);
        return;
    }
    Request request = request_of(*service);
    if (found != users_.end() && found->second.request.age.uid != request.age.uid) {
        remove_user(name);  // deleted and created again (LB-013)
        found = users_.end();
    }
    ShownStatus shown = shown_status_of(*service, request);
    if (found == users_.end()) {
        User& user = users_[name];
        user.request = std::move(request);
        user.shown = std::move(shown);
        before_.try_emplace(name, std::nullopt);
        enqueue(user, Step::OwnStatus);
        return;
    }
    User& user = found->second;
    const bool same_request = user.request == request;
    if (same_request && user.shown == shown) {
        return;
    }
    const bool was_queued = user.is_queued;
    dequeue(user);
    uses_.unwatch(user);
    if (same_request && !user.addresses.empty() && !was_queued) {
        // Usually its own allocation, written to the status. The address in use does not depend on it.
        user.shown = std::move(shown);
        enqueue_for_decision(user);
        user.must_decide = true;
        return;
    }
    if (!same_request) {
        set_aside(user);
        user.request = std::move(request);
    }
    user.shown = std::move(shown);
    enqueue(user, same_request ? Step::Kept : Step::KeptByChanged);
}

void Allocator::State::remove_user(const kube::ObjectName& name) {
    const auto found = users_.find(name);
    if (found == users_.end()) {
        return;
    }
    User& user = found->second;
    before_.try_emplace(name, user.allocation);
    dequeue(user);
    uses_.unwatch(user);
    take_all(user);
    users_.erase(found);
}

const annotations::Labels& Allocator::State::labels_of(const std::string& namespace_name) const {
    static const annotations::Labels kNone;
    const auto found = namespaces_.find(namespace_name);
    return found == namespaces_.end() ? kNone : found->second;
}

// ---- queue ----

void Allocator::State::enqueue(User& user, Step step) {
    dequeue(user);
    user.step = step;
    user.is_queued = true;
    user.must_decide = true;
    queue_.insert(&user);
}

void Allocator::State::enqueue_for_decision(User& user) {
    enqueue(user, user.request.has_addresses() ? Step::RequestedAddress : Step::FreeChoice);
}

// For a Service that waits for a fact. Keeps `must_decide`, which the caller has set if needed.
void Allocator::State::enqueue_again(User& user) {
    if (user.is_queued) {
        return;
    }
    const bool must_decide = user.must_decide;
    if (user.addresses.empty() && !user.shown.addresses.empty()) {
        enqueue(user, user.shown.is_ours ? Step::OwnStatus : Step::ForeignStatus);
    } else {
        enqueue_for_decision(user);
    }
    user.must_decide = must_decide;
}

void Allocator::State::dequeue(User& user) {
    if (user.is_queued) {
        queue_.erase(&user);
        user.is_queued = false;
    }
}

bool Allocator::State::facts_are_unchanged(const User& user) {
    return !user.must_decide && std::ranges::all_of(user.pool_facts, [&](const User::PoolFact& fact) {
        return fact.exhausted == !pools_.lowest_free(fact.pool, fact.family).has_value();
    });
}

void Allocator::State::work_off_queue() {
    while (!queue_.empty()) {
        User& user = **queue_.begin();
        dequeue(user);
        if (facts_are_unchanged(user)) {
            continue;
        }
        if (user.step <= Step::ForeignStatus) {
            claim(user);
        } else {
            decide(user);
        }
    }
}

// ---- steps ----

void Allocator::State::claim(User& user) {
    const bool from_status = user.step >= Step::OwnStatus;
    if (from_status && user.shown.is_ours != (user.step == Step::OwnStatus)) {
        enqueue(user, user.shown.is_ours ? Step::OwnStatus : Step::ForeignStatus);
        return;
    }
    const std::vector<IpAddr> claimed = from_status ? user.shown.addresses : std::exchange(user.previous, {});
    std::vector<IpAddr> kept;
    for (const IpAddr& address : claimed) {
        const bool is_granted = user.step == Step::ForeignStatus ? chooser_.may_adopt(user, address)
                                                                 : chooser_.may_keep(user, address);
        if (is_granted) {
            kept.push_back(address);
        }
    }
    if (!kept.empty()) {
        uses_.unwatch(user);
        give(user, kept);
    }
    if (!from_status && user.addresses.empty() && !user.shown.addresses.empty()) {
        enqueue(user, user.shown.is_ours ? Step::OwnStatus : Step::ForeignStatus);
    } else {
        enqueue_for_decision(user);
    }
}

void Allocator::State::decide(User& user) {
    uses_.unwatch(user);
    user.must_decide = false;
    std::optional<Refusal> refusal = user.request.malformed;
    if (user.addresses.empty()) {
        // A claim that failed is repeated when the other users of the address are different.
        user.address_facts = user.shown.addresses;
        if (chooser_.leaves_alone(user)) {
            refusal = {RefusalReason::AddressOutsidePools,
                       "the status of the Service shows an address of another controller; remove it from "
                       "status.loadBalancer.ingress to get one of the pools"};
        } else if (!refusal) {
            Chooser::Decision decision = chooser_.choose(user, Chooser::Pools::All);
            refusal = std::move(decision.refusal);
            if (!refusal) {
                uses_.unwatch(user);
                give(user, decision.addresses);
            }
        }
    }
    if (!user.addresses.empty() && !user.request.malformed) {
        decide_incomplete(user);
        return;
    }
    update_allocation(user, std::move(refusal));
    uses_.watch(user);
}

// A Service with addresses: adds a missing family (DUAL-004), or replaces addresses that no pool covers if a
// pool says so (LB-014). The addresses stay if that is not possible.
void Allocator::State::decide_incomplete(User& user) {
    const Request& request = user.request;
    const auto lacks = [&](IpFamily family) {
        return std::ranges::find(user.addresses, family, &IpAddr::family) == user.addresses.end();
    };
    const auto lacks_requested = [&] {
        return std::ranges::any_of(request.families, [&](IpFamily family) {
            return lacks(family) && request.addresses[index_of(family)].has_value();
        });
    };
    std::optional<Refusal> refusal;
    if (const std::vector<IpAddr> moved = chooser_.replace_uncovered(user); !moved.empty()) {
        take_uncovered(user);
        give(user, moved);
    }
    if (user.addresses.size() < request.families.size()) {
        const bool insists = request.requires_all || lacks_requested();
        if (const std::vector<IpAddr> added = chooser_.complete(user); !added.empty()) {
            give(user, added);
        } else if (insists) {
            Chooser::Decision moved = chooser_.choose(user, Chooser::Pools::All);
            refusal = std::move(moved.refusal);
            if (!refusal) {
                take_all(user);
                give(user, moved.addresses);
            }
        }
    }
    update_allocation(user, std::move(refusal));
    if (user.addresses.size() == request.families.size() && user.allocation.pool_missing.empty()) {
        user.pool_facts.clear();
        user.address_facts.clear();
        user.watches_key = false;
    }
    uses_.watch(user);
}

// ---- addresses of a Service ----

void Allocator::State::give(User& user, const std::vector<IpAddr>& addresses) {
    for (const IpAddr& address : addresses) {
        user.addresses.push_back(address);
        uses_.add(address, user, pools_, wake_);
    }
    std::ranges::sort(user.addresses, {}, [&](const IpAddr& address) {
        return std::ranges::find(user.request.families, address.family()) - user.request.families.begin();
    });
}

void Allocator::State::take_all(User& user) {
    for (const IpAddr& address : std::exchange(user.addresses, {})) {
        uses_.remove(address, user, pools_, wake_);
    }
}

void Allocator::State::take_uncovered(User& user) {
    for (const IpAddr& address : std::vector(user.addresses)) {
        if (!pools_.containing(address)) {
            uses_.remove(address, user, pools_, wake_);
            std::erase(user.addresses, address);
        }
    }
}

// The Service claims its addresses again in this batch, after those that are unchanged (LB-011).
void Allocator::State::set_aside(User& user) {
    if (user.addresses.empty()) {
        return;
    }
    std::vector<IpAddr> addresses = user.addresses;
    take_all(user);
    user.previous = std::move(addresses);
}

void Allocator::State::update_allocation(User& user, std::optional<Refusal> refusal) {
    Allocation allocation = allocation_of(user.addresses, pools_, std::move(refusal));
    if (allocation != user.allocation) {
        before_.try_emplace(user.request.age.service, user.allocation);
        user.allocation = std::move(allocation);
    }
}

const Allocation* Allocator::State::find(const kube::ObjectName& service) const {
    const auto found = users_.find(service);
    return found == users_.end() ? nullptr : &found->second.allocation;
}

std::vector<PoolUsage> Allocator::State::usage() const {
    return pools_.usage([&](const Reservation& reservation) {
        return std::ranges::any_of(uses_.of(reservation.address), [&](const User* user) {
            return user->request.age.service != reservation.service;
        });
    });
}

// ---- interface ----

Allocator::Allocator(semantics::Policy policy) : state_(std::make_unique<State>(std::move(policy))) {}
Allocator::~Allocator() = default;
Allocator::Allocator(Allocator&&) noexcept = default;
Allocator& Allocator::operator=(Allocator&&) noexcept = default;

std::vector<kube::ObjectName> Allocator::apply(const Changes& changes) {
    return state_->apply(changes);
}

const Allocation* Allocator::find(const kube::ObjectName& service) const {
    return state_->find(service);
}

std::vector<PoolUsage> Allocator::usage() const {
    return state_->usage();
}

}  // namespace penstock::ipam
