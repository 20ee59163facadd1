// SPDX-License-Identifier: Apache-2.0
// Index from addresses to their users: the Services that have an endpoint at an address, or name it as an
// external IP. Lookups are rare: they happen when an address becomes forbidden, or is no longer forbidden.
// Entries exist for every endpoint, so memory matters most: a node of 24 bytes and a bucket of 8.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "dataplane/base/ip.hpp"

namespace penstock::semantics {

template <typename User>
class AddressUsers {
 public:
    // A user that uses the address twice is added twice.
    void add(const IpAddr& address, User& user) { users_.emplace(key_of(address), &user); }
    void remove(const IpAddr& address, User& user) {
        const auto [first, last] = users_.equal_range(key_of(address));
        for (auto one = first; one != last; ++one) {
            if (one->second == &user) {
                users_.erase(one);
                return;
            }
        }
    }
    // Calls visit(user) for each user of `address`. A user may be visited more than once. In rare cases a
    // user of another address with the same hash is visited. Both are harmless, because evaluating a user
    // again gives the same result.
    template <typename Visit>
    void each_at(const IpAddr& address, const Visit& visit) const {
        const auto [first, last] = users_.equal_range(key_of(address));
        for (auto one = first; one != last; ++one) {
            visit(*one->second);
        }
    }
    template <typename Visit>
    void each(const Visit& visit) const {
        for (const auto& [key, user] : users_) {
            visit(*user);
        }
    }

 private:
    static uint64_t key_of(const IpAddr& address) noexcept { return std::hash<IpAddr>{}(address); }

    std::unordered_multimap<uint64_t, User*> users_;
};

}  // namespace penstock::semantics
