// SPDX-License-Identifier: Apache-2.0
// Services with their addresses, and the facts that each of them waits for. Each fact that a decision has
// read is recorded, so a change wakes only the Services whose decision may be different now.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "control/ipam/allocation.hpp"
#include "control/ipam/pool_table.hpp"
#include "control/ipam/request.hpp"

namespace penstock::ipam {

// Step of the order of service (allocator.hpp).
enum class Step : uint8_t { Kept, KeptByChanged, OwnStatus, ForeignStatus, RequestedAddress, FreeChoice };

// An owned Service.
struct User {
    Request request;
    ShownStatus shown;
    std::vector<IpAddr> addresses;  // that the Service uses, in the order of its families
    std::vector<IpAddr> previous;   // that it used before this batch and has not claimed again yet
    Allocation allocation;
    // Only holds addresses, because its object cannot be read: request.age.service and `addresses` are known.
    bool is_unreadable = false;

    // The facts that the last decision has read. A pool is read as "exhausted or not".
    struct PoolFact {
        PoolTable::Index pool = 0;
        IpFamily family = IpFamily::V4;
        bool exhausted = false;
    };
    std::vector<PoolFact> pool_facts;
    std::vector<IpAddr> address_facts;
    bool watches_key = false;  // addresses of Services with the same sharing key

    bool is_queued = false;
    bool must_decide = false;  // another fact than those of pools has changed
    Step step = Step::FreeChoice;
};

// Which Services use an address, and which Services wait for which fact.
class Users {
 public:
    using Wake = std::function<void(User&)>;

    // The addresses that Services with a sharing key use, with the number of users.
    using Shared = std::map<IpAddr, uint32_t>;

    // Users of an address; empty if it is free.
    [[nodiscard]] const std::vector<User*>& of(const IpAddr& address) const;
    [[nodiscard]] const Shared& shared_by(const std::string& key) const;

    // Adds or removes a use, updates the free addresses in `pools`, and calls `wake` for each Service that
    // waits for one of the facts.
    void add(const IpAddr& address, User& user, PoolTable& pools, const Wake& wake);
    void remove(const IpAddr& address, User& user, PoolTable& pools, const Wake& wake);
    // Forgets all uses, because the pools are different.
    void clear();

    // Registers and removes `user` as waiting for the facts that it lists. The key is request.sharing.key.
    void watch(User& user);
    void unwatch(User& user);

 private:
    struct ByAge {
        bool operator()(const User* a, const User* b) const { return a->request.age < b->request.age; }
    };
    using Waiters = std::set<User*, ByAge>;

    void changed(const IpAddr& address, const User& user, const Wake& wake) const;
    void pool_changed(const IpAddr& address, PoolTable& pools, bool was_exhausted, const Wake& wake) const;

    std::unordered_map<IpAddr, std::vector<User*>> users_;
    std::map<std::string, Shared> shared_;
    std::unordered_map<IpAddr, Waiters> address_waiters_;
    std::map<std::string, Waiters> key_waiters_;
    std::map<std::pair<PoolTable::Index, IpFamily>, Waiters> pool_waiters_;
};

}  // namespace penstock::ipam
