// SPDX-License-Identifier: Apache-2.0
#include "control/semantics/prefix_set.hpp"

#include <algorithm>

namespace penstock::semantics {

PrefixSet::PrefixSet(const std::vector<Prefix>& prefixes) {
    for (const Prefix& prefix : prefixes) {
        add(prefix);
    }
}

void PrefixSet::add(const Prefix& prefix) {
    ++networks_[{prefix.family(), prefix.length()}][prefix.address()];
}

void PrefixSet::remove(const Prefix& prefix) {
    const auto same_length = networks_.find({prefix.family(), prefix.length()});
    if (same_length == networks_.end()) {
        return;
    }
    auto& networks = same_length->second;
    const auto found = networks.find(prefix.address());
    if (found != networks.end() && --found->second == 0) {
        networks.erase(found);
        if (networks.empty()) {
            networks_.erase(same_length);
        }
    }
}

std::optional<Prefix> PrefixSet::longest_match(const IpAddr& address) const {
    for (const auto& [kind, networks] : networks_) {
        if (kind.first != address.family()) {
            continue;
        }
        // Cannot fail: the length is that of a prefix of this family.
        const Result<Prefix> network = Prefix::make(address, kind.second);
        if (network && networks.contains(network->address())) {
            return *network;
        }
    }
    return std::nullopt;
}

bool PrefixSet::covers(const Prefix& prefix) const {
    return std::ranges::any_of(networks_, [&](const auto& of_one_length) {
        const auto& [kind, networks] = of_one_length;
        if (kind.first != prefix.family() || kind.second > prefix.length()) {
            return false;
        }
        const Result<Prefix> network = Prefix::make(prefix.address(), kind.second);
        return network && networks.contains(network->address());
    });
}

std::vector<Prefix> PrefixSet::outermost() const {
    std::vector<Prefix> found;
    PrefixSet wider;
    // Shortest first: a prefix that contains a member is visited before the member.
    for (auto of_one_length = networks_.rbegin(); of_one_length != networks_.rend(); ++of_one_length) {
        for (const auto& [address, count] : of_one_length->second) {
            const Result<Prefix> member = Prefix::make(address, of_one_length->first.second);
            if (member && !wider.covers(*member)) {
                found.push_back(*member);
                wider.add(*member);
            }
        }
    }
    std::ranges::sort(found);
    return found;
}

}  // namespace penstock::semantics
