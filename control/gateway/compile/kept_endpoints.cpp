// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/compile/kept_endpoints.hpp"

#include <algorithm>

namespace penstock::gateway {
namespace {

void sort_unique(std::vector<SocketAddress>& sockets) {
    std::ranges::sort(sockets);
    const auto repeated = std::ranges::unique(sockets);
    sockets.erase(repeated.begin(), repeated.end());
}

}  // namespace

std::vector<SocketAddress> offered_endpoints(const model::Service& service) {
    std::vector<SocketAddress> sockets;
    for (const auto& set : service.sets) {
        for (const auto& endpoint : set.endpoints) {
            sockets.push_back(endpoint.socket());
        }
    }
    sort_unique(sockets);
    return sockets;
}

std::vector<SocketAddress> endpoints_with_flows(const model::Service& service) {
    const bool must_serve = service.key.protocol == Protocol::Udp;
    std::vector<SocketAddress> sockets = offered_endpoints(service);
    for (const auto& set : service.sets) {
        for (const auto& endpoint : set.excluded) {
            if (endpoint.why != model::Exclusion::ForbiddenAddress && (endpoint.serving || !must_serve)) {
                sockets.push_back(endpoint.socket());
            }
        }
    }
    sort_unique(sockets);
    return sockets;
}

std::vector<SocketAddress> places_of(const lb::FlowEndpoints& endpoints) {
    std::vector<SocketAddress> sockets;
    sockets.reserve(endpoints.all().size());
    for (const lb::FlowEndpoints::Endpoint& endpoint : endpoints.all()) {
        sockets.push_back({endpoint.address, endpoint.port});
    }
    return sockets;
}

}  // namespace penstock::gateway
