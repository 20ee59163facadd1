// Who uses an address: which Services have an endpoint there, which name it as an external IP. Asked when an address becomes forbidden, or
// stops being so, which is rare; kept for every endpoint, so what counts is memory: a node of 24 bytes and a bucket of 8.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "dataplane/base/ip.hpp"

namespace penstock::semantics {

template <typename User>
class AddressUsers {
 public:
    // One that uses the address twice is added twice.
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
    // Calls visit(user) for each, some of them more than once, and rarely for one that uses another address of the same hash: whoever is
    // judged again in vain comes out the same.
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
