// SPDX-License-Identifier: Apache-2.0
#include "control/rpc/connection_limit.hpp"

#include "control/base/client_source.hpp"
#include "dataplane/base/check.hpp"

namespace penstock::rpc {

std::optional<ConnectionLimit::Rule> ConnectionLimit::admit(const IpAddr& source) {
    const bool is_local = source.is_loopback();
    const Prefix key = client_source(source);
    if (const auto known = by_source_.find(key);
        known != by_source_.end() && known->second >= limits_.per_source_max) {
        return Rule::PerSource;
    }
    if (is_local && loopback_ >= limits_.loopback_max) {
        return Rule::PerSource;
    }
    if (size() >= limits_.all_max || (!is_local && remote_ >= limits_.all_max - limits_.loopback_reserve)) {
        return Rule::All;
    }
    ++by_source_[key];
    ++(is_local ? loopback_ : remote_);
    return std::nullopt;
}

void ConnectionLimit::release(const IpAddr& source) {
    const auto known = by_source_.find(client_source(source));
    PENSTOCK_ASSERT(known != by_source_.end() && known->second > 0);
    if (--known->second == 0) {
        by_source_.erase(known);
    }
    --(source.is_loopback() ? loopback_ : remote_);
}

}  // namespace penstock::rpc
