// SPDX-License-Identifier: Apache-2.0
// The endpoints of a service port that have flows: those that a backend set offers to new flows, and those
// that only keep the flows they have, because they terminate or are not ready, or because a policy excludes
// them. Finds the backend of a connection that another gateway has opened (pipeline/opening/take_over.hpp).
// Immutable once published; any thread.
#pragma once

#include <algorithm>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "dataplane/base/ids.hpp"
#include "dataplane/base/ip.hpp"
#include "dataplane/base/protocol.hpp"

namespace penstock::lb {

class FlowEndpoints {
 public:
    struct Endpoint {
        IpAddr address;
        L4Port port = 0;
        BackendId backend;
    };

    FlowEndpoints() = default;  // no endpoint
    // Each (address, port) once.
    explicit FlowEndpoints(std::vector<Endpoint> endpoints) : endpoints_(std::move(endpoints)) {
        std::ranges::sort(endpoints_, is_before);
    }

    // Unset: the service port has no such endpoint. A binary search: the names of endpoints are chosen by
    // users of the cluster, and cannot make it slower.
    [[nodiscard]] BackendId find(const IpAddr& address, L4Port port) const noexcept {
        const auto at = std::ranges::lower_bound(endpoints_, Endpoint{address, port, {}}, is_before);
        return at != endpoints_.end() && at->port == port && at->address == address ? at->backend
                                                                                    : BackendId{};
    }
    // Sorted by address and port.
    [[nodiscard]] std::span<const Endpoint> all() const noexcept { return endpoints_; }
    [[nodiscard]] bool empty() const noexcept { return endpoints_.empty(); }

 private:
    static bool is_before(const Endpoint& one, const Endpoint& other) noexcept {
        return std::tie(one.address, one.port) < std::tie(other.address, other.port);
    }

    std::vector<Endpoint> endpoints_;
};

}  // namespace penstock::lb
