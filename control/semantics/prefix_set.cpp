#include "control/semantics/prefix_set.hpp"

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
        // Cannot fail: the length came from a prefix of this family.
        const Result<Prefix> network = Prefix::make(address, kind.second);
        if (network && networks.contains(network->address())) {
            return *network;
        }
    }
    return std::nullopt;
}

}  // namespace penstock::semantics
