// SPDX-License-Identifier: Apache-2.0
// Linux's neighbours on the twins, and the times of the requests to resolve them. A machine without I/O and
// clock: its inputs are facts (netlink_messages.hpp) and times, its outputs are the list of neighbours and
// whether a request to the kernel is due.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "dataplane/base/ids.hpp"
#include "dataplane/base/ip.hpp"
#include "dataplane/route/route_table.hpp"
#include "drivers/host/netlink_messages.hpp"

namespace penstock::drivers {

struct NeighbourKey {
    NicPortId port;
    IpAddr address;
    bool operator==(const NeighbourKey&) const = default;
};
struct NeighbourKeyHash {
    size_t operator()(const NeighbourKey& key) const noexcept {
        return std::hash<IpAddr>{}(key.address) ^ key.port.value;
    }
};

class KernelNeighbours {
 public:
    using Clock = std::chrono::steady_clock;
    using Keys = std::unordered_set<NeighbourKey, NeighbourKeyHash>;

    KernelNeighbours();

    enum class Applied : uint8_t {
        Nothing,     // no change
        State,       // only the state of a neighbour that is usable as before
        Forwarding,  // a MAC, whether a neighbour is usable, or whether it has failed
        Full,        // a new neighbour beyond limits::kNeighboursMax, which is not recorded
    };
    // A neighbour that has failed counts as failed until it answers, also while it is resolved again.
    Applied apply(const NeighbourFact& fact);
    // After a dump: removes the neighbours that did not occur in it. True if there were any.
    bool keep_only(const Keys& seen);

    [[nodiscard]] std::vector<route::Neighbour> list() const;  // sorted by id

    // True if the kernel should be requested now to resolve this next hop; the time is recorded. A usable
    // neighbour needs no request.
    [[nodiscard]] bool start_resolution(const NeighbourKey& key, Clock::time_point now);
    // True if the kernel should be requested now to probe this neighbour, because it is stale; the time is
    // recorded.
    [[nodiscard]] bool start_confirmation(const route::Neighbour& neighbour, Clock::time_point now);

 private:
    bool forget(const NeighbourKey& key);
    // True if the last request for this neighbour is less than `pause` ago.
    [[nodiscard]] bool is_requested_within(const NeighbourKey& key, std::chrono::seconds pause,
                                           Clock::time_point now) const;

    std::unordered_map<NeighbourKey, route::Neighbour, NeighbourKeyHash> neighbours_;
    // Taken from the front, returned to the back, so that an id stays unused as long as possible.
    std::deque<uint32_t> free_ids_;
    std::unordered_map<NeighbourKey, Clock::time_point, NeighbourKeyHash> requested_;
};

}  // namespace penstock::drivers
