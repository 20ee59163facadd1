#include "control/sync/diff.hpp"

namespace penstock::sync {

// Both sides are sorted by key: one walk over the two.
Changes diff(const model::Desired& from, const model::Desired& to) {
    Changes changes;
    auto old_service = from.services.begin();
    auto new_service = to.services.begin();
    while (old_service != from.services.end() || new_service != to.services.end()) {
        const bool only_old =
            new_service == to.services.end() || (old_service != from.services.end() && old_service->first < new_service->first);
        const bool only_new =
            old_service == from.services.end() || (new_service != to.services.end() && new_service->first < old_service->first);
        if (only_old) {
            changes.remove.push_back(old_service->first);
        } else if (only_new || old_service->second != new_service->second) {
            changes.upsert.push_back(new_service->second);
        }
        if (!only_new) {
            ++old_service;
        }
        if (!only_old) {
            ++new_service;
        }
    }
    if (from.node_port_addresses != to.node_port_addresses) {
        changes.node_port_addresses = to.node_port_addresses;
    }
    return changes;
}

}  // namespace penstock::sync
