// SPDX-License-Identifier: Apache-2.0
#include "control/http/admission.hpp"

#include "control/base/client_source.hpp"
#include "dataplane/base/check.hpp"

namespace penstock::http {

void Admission::insert(ConnectionId id, const Connection& connection) {
    for (Group* group : {&pool(connection), &by_source_[connection.source]}) {
        (connection.is_silent ? group->silent : group->answering).insert(id);
    }
}

void Admission::erase(ConnectionId id, const Connection& connection) {
    const auto source = by_source_.find(connection.source);
    for (Group* group : {&pool(connection), &source->second}) {
        (connection.is_silent ? group->silent : group->answering).erase(id);
    }
    if (source->second.size() == 0) {
        by_source_.erase(source);
    }
}

std::optional<ConnectionId> Admission::admit(ConnectionId id, const IpAddr& address) {
    PENSTOCK_ASSERT(connections_.empty() || connections_.rbegin()->first < id);
    const Connection connection{.source = client_source(address), .is_local = address.is_loopback()};
    std::optional<ConnectionId> victim;
    if (const auto source = by_source_.find(connection.source);
        source != by_source_.end() && source->second.size() >= limits_.per_source_max) {
        victim = source->second.victim();
    } else if (const Group& all = pool(connection);
               all.size() >= (connection.is_local ? limits_.local_max : limits_.remote_max)) {
        victim = all.victim();
    }
    if (victim) {
        remove(*victim);
    }
    connections_.emplace(id, connection);
    insert(id, connection);
    return victim;
}

void Admission::set_silent(ConnectionId id, bool is_silent) {
    const auto found = connections_.find(id);
    if (found == connections_.end()) {
        return;
    }
    erase(id, found->second);
    found->second.is_silent = is_silent;
    insert(id, found->second);
}

void Admission::remove(ConnectionId id) {
    const auto found = connections_.find(id);
    if (found == connections_.end()) {
        return;
    }
    erase(id, found->second);
    connections_.erase(found);
}

}  // namespace penstock::http
