// A set of addresses in which each is counted: many Services may name one, and it leaves with the last of them.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "dataplane/base/ip.hpp"

namespace penstock::semantics {

class AddressCount {
 public:
    // True where it was not there before.
    bool add(const IpAddr& address) { return ++counts_[address] == 1; }
    // True where it is not there any more.
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
