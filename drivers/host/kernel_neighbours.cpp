// SPDX-License-Identifier: Apache-2.0
#include "drivers/host/kernel_neighbours.hpp"

#include <algorithm>

#include "dataplane/base/limits.hpp"

namespace penstock::drivers {
namespace {

// The kernel itself sends three requests in three seconds. Repeating the request sooner has no effect, and
// after a failure it would only multiply ARP on the wire.
constexpr std::chrono::seconds kRequestAgain{1};
constexpr std::chrono::seconds kRequestAgainFailed{3};

}  // namespace

KernelNeighbours::KernelNeighbours() {
    for (uint32_t id = 0; id < limits::kNeighboursMax; ++id) {
        free_ids_.push_back(id);
    }
}

bool KernelNeighbours::forget(const NeighbourKey& key) {
    const auto found = neighbours_.find(key);
    if (found == neighbours_.end()) {
        return false;
    }
    free_ids_.push_back(found->second.id.value);
    neighbours_.erase(found);
    return true;
}

KernelNeighbours::Applied KernelNeighbours::apply(const NeighbourFact& fact) {
    const NeighbourKey key{fact.port, fact.address};
    if (!fact.state) {
        return forget(key) ? Applied::Forwarding : Applied::Nothing;
    }
    route::Neighbour now;
    now.port = fact.port;
    now.address = fact.address;
    now.state = *fact.state;
    now.mac = fact.mac.value_or(MacAddr{});
    if (now.is_usable() && !fact.mac) {
        return Applied::Nothing;  // a device without link addresses: there is no MAC for the Ethernet header
    }
    const auto known = neighbours_.find(key);
    if (known == neighbours_.end()) {
        if (free_ids_.empty()) {
            return Applied::Full;
        }
        now.id = NeighbourId{free_ids_.front()};
        free_ids_.pop_front();
        neighbours_.emplace(key, now);
        return Applied::Forwarding;
    }
    now.id = known->second.id;
    if (now == known->second) {
        return Applied::Nothing;
    }
    const bool has_failed = known->second.state == route::NeighbourState::Failed;
    if (has_failed && now.state == route::NeighbourState::Resolving) {
        return Applied::Nothing;
    }
    const bool forwards_alike = now.is_usable() ? known->second.is_usable() && now.mac == known->second.mac
                                                : now.state == known->second.state;
    known->second = now;
    return forwards_alike ? Applied::State : Applied::Forwarding;
}

bool KernelNeighbours::keep_only(const Keys& seen) {
    std::vector<NeighbourKey> gone;
    for (const auto& [key, neighbour] : neighbours_) {
        if (!seen.contains(key)) {
            gone.push_back(key);
        }
    }
    for (const NeighbourKey& key : gone) {
        forget(key);
    }
    return !gone.empty();
}

std::vector<route::Neighbour> KernelNeighbours::list() const {
    std::vector<route::Neighbour> list;
    list.reserve(neighbours_.size());
    for (const auto& [key, neighbour] : neighbours_) {
        list.push_back(neighbour);
    }
    std::ranges::sort(list, {}, &route::Neighbour::id);
    return list;
}

bool KernelNeighbours::is_requested_within(const NeighbourKey& key, std::chrono::seconds pause,
                                           Clock::time_point now) const {
    const auto requested = requested_.find(key);
    return requested != requested_.end() && now < requested->second + pause;
}

bool KernelNeighbours::start_resolution(const NeighbourKey& key, Clock::time_point now) {
    const auto known = neighbours_.find(key);
    if (known != neighbours_.end() && known->second.is_usable()) {
        return false;
    }
    const bool failed_before =
        known != neighbours_.end() && known->second.state == route::NeighbourState::Failed;
    if (is_requested_within(key, failed_before ? kRequestAgainFailed : kRequestAgain, now)) {
        return false;
    }
    if (requested_.size() >= limits::kNeighboursMax) {
        std::erase_if(requested_,
                      [&](const auto& entry) { return entry.second + kRequestAgainFailed <= now; });
        if (requested_.size() >= limits::kNeighboursMax) {
            return false;  // an on-link prefix is being scanned; the kernel's own table is full by now too
        }
    }
    requested_[key] = now;
    return true;
}

bool KernelNeighbours::start_confirmation(const route::Neighbour& neighbour, Clock::time_point now) {
    const NeighbourKey key{neighbour.port, neighbour.address};
    if (neighbour.state != route::NeighbourState::Stale || is_requested_within(key, kRequestAgain, now)) {
        return false;
    }
    requested_[key] = now;
    return true;
}

}  // namespace penstock::drivers
