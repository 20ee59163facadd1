// SPDX-License-Identifier: Apache-2.0
#include "control/ipam/users.hpp"

#include <algorithm>

namespace penstock::ipam {
namespace {

template <typename Map, typename Key, typename Waiter>
void forget_waiter(Map& waiters, const Key& key, Waiter* waiter) {
    if (const auto found = waiters.find(key); found != waiters.end()) {
        found->second.erase(waiter);
        if (found->second.empty()) {
            waiters.erase(found);
        }
    }
}

// Of the address's pool and family; false outside all pools.
bool is_exhausted(const IpAddr& address, PoolTable& pools) {
    const auto pool = pools.containing(address);
    return pool && !pools.lowest_free(*pool, address.family());
}

}  // namespace

const std::vector<User*>& Users::of(const IpAddr& address) const {
    static const std::vector<User*> kNone;
    const auto found = users_.find(address);
    return found == users_.end() ? kNone : found->second;
}

const Users::Shared& Users::shared_by(const std::string& key) const {
    static const Shared kNone;
    const auto found = shared_.find(key);
    return found == shared_.end() ? kNone : found->second;
}

void Users::add(const IpAddr& address, User& user, PoolTable& pools, const Wake& wake) {
    std::vector<User*>& users = users_[address];
    const bool was_exhausted = is_exhausted(address, pools);
    if (users.empty()) {
        pools.use(address);
    }
    users.push_back(&user);
    if (const std::string& key = user.request.sharing.key; !key.empty()) {
        ++shared_[key][address];
    }
    changed(address, user, wake);
    pool_changed(address, pools, was_exhausted, wake);
}

void Users::remove(const IpAddr& address, User& user, PoolTable& pools, const Wake& wake) {
    const auto found = users_.find(address);
    const bool was_exhausted = is_exhausted(address, pools);
    std::erase(found->second, &user);
    if (found->second.empty()) {
        users_.erase(found);
        pools.release(address);
    }
    if (const std::string& key = user.request.sharing.key; !key.empty()) {
        Shared& shared = shared_[key];
        if (--shared[address] == 0) {
            shared.erase(address);
        }
        if (shared.empty()) {
            shared_.erase(key);
        }
    }
    changed(address, user, wake);
    pool_changed(address, pools, was_exhausted, wake);
}

void Users::changed(const IpAddr& address, const User& user, const Wake& wake) const {
    const auto wake_all = [&](const Waiters& waiters) {
        for (User* waiter : waiters) {
            waiter->must_decide = true;
            wake(*waiter);
        }
    };
    if (const auto waiters = address_waiters_.find(address); waiters != address_waiters_.end()) {
        wake_all(waiters->second);
    }
    if (const auto waiters = key_waiters_.find(user.request.sharing.key); waiters != key_waiters_.end()) {
        wake_all(waiters->second);
    }
}

void Users::pool_changed(const IpAddr& address, PoolTable& pools, bool was_exhausted,
                         const Wake& wake) const {
    if (is_exhausted(address, pools) == was_exhausted) {
        return;
    }
    const auto waiters = pool_waiters_.find({*pools.containing(address), address.family()});
    if (waiters != pool_waiters_.end()) {
        for (User* waiter : waiters->second) {
            wake(*waiter);
        }
    }
}

void Users::clear() {
    users_.clear();
    shared_.clear();
}

void Users::watch(User& user) {
    for (const User::PoolFact& fact : user.pool_facts) {
        pool_waiters_[{fact.pool, fact.family}].insert(&user);
    }
    for (const IpAddr& address : user.address_facts) {
        address_waiters_[address].insert(&user);
    }
    if (user.watches_key) {
        key_waiters_[user.request.sharing.key].insert(&user);
    }
}

void Users::unwatch(User& user) {
    for (const User::PoolFact& fact : user.pool_facts) {
        forget_waiter(pool_waiters_, std::pair(fact.pool, fact.family), &user);
    }
    for (const IpAddr& address : user.address_facts) {
        forget_waiter(address_waiters_, address, &user);
    }
    if (user.watches_key) {
        forget_waiter(key_waiters_, user.request.sharing.key, &user);
    }
    user.pool_facts.clear();
    user.address_facts.clear();
    user.watches_key = false;
}

}  // namespace penstock::ipam
