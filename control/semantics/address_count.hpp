// SPDX-License-Identifier: Apache-2.0
// A set of addresses with a reference count for each. Several Services may name the same address; it stays in
// the set until the last of them removes it.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "dataplane/base/ip.hpp"

namespace penstock::semantics {

class AddressCount {
 public:
    // Returns true if the address is new in the set.
    bool add(const IpAddr& address) { return ++counts_[address] == 1; }
    // Returns true if this removed the last reference.
    bool remove(const IpAddr& address) {
        const auto found = counts_.find(address);
        if (found == counts_.end() || --found->second > 0) {
            return false;
        }
        counts_.erase(found);
        return true;
    }
    [[nodiscard]] bool contains(const IpAddr& address) const { return counts_.contains(address); }

 private:
    std::unordered_map<IpAddr, uint32_t> counts_;
};

}  // namespace penstock::semantics
