// SPDX-License-Identifier: Apache-2.0
#include "dataplane/pipeline/opening/reverse_path.hpp"

namespace penstock::pipeline {

PENSTOCK_NOINLINE SourcePath judge_other_path(const config::Snapshot& snapshot, const IpAddr& source,
                                              NicPortId arrival) noexcept {
    const config::ReversePath mode = snapshot.packets.reverse_path[arrival.value];
    if (mode == config::ReversePath::Off) {
        return SourcePath::Ok;
    }
    const route::Hop* const hop = snapshot.routes->hop(source);
    if (hop == nullptr) {
        return SourcePath::NoRoute;
    }
    if (mode == config::ReversePath::Loose) {
        return SourcePath::Ok;
    }
    const route::PortSet here = route::set_of(arrival);
    if (mode == config::ReversePath::Strict) {
        return (hop->best_ports & here) != 0 ? SourcePath::Ok : SourcePath::OtherPort;
    }
    if ((hop->all_ports & here) != 0) {
        return SourcePath::Ok;
    }
    const route::PortSet connected = snapshot.routes->connected_ports(source);
    if (connected != 0 && (connected & here) == 0) {
        return SourcePath::OtherSubnet;
    }
    if (snapshot.cluster_clients->are_inside(source)) {
        return SourcePath::InsideElsewhere;
    }
    return snapshot.services->is_endpoint(source) ? SourcePath::EndpointElsewhere : SourcePath::Ok;
}

}  // namespace penstock::pipeline
