// SPDX-License-Identifier: Apache-2.0
#include "dataplane/worker/explain_text.hpp"

#include "dataplane/pipeline/opening/reverse_path.hpp"

namespace penstock::worker {
namespace {

std::string ports_text(route::PortSet ports) {
    std::string text;
    for (uint8_t port = 0; port < limits::kNicPortsMax; ++port) {
        if ((ports & route::set_of({port})) != 0) {
            text += (text.empty() ? "NicPort " : " or NicPort ") + std::to_string(port);
        }
    }
    return text;
}

const char* mid_stream_text(const config::Snapshot& snapshot) {
    if (!snapshot.packets.picks_up_midstream) {
        return "rejected with RST: mid-stream TCP segment without a connection";
    }
    return "rejected with RST: mid-stream TCP segment without a connection; --midstream-pickup applies "
           "only to Services that have endpoints, keep the source and schedule by sh or mh";
}

}  // namespace

std::string socket_text(const IpAddr& address, L4Port port) {
    return (address.is_v4() ? address.to_string() : "[" + address.to_string() + "]") + ":" +
           std::to_string(port);
}

std::string service_text(const config::Snapshot& snapshot, const packet::FlowKey& key,
                         const lb::FrontendRow* frontend) {
    const std::string destination = socket_text(key.destination, key.destination_port);
    if (frontend != nullptr) {
        const lb::BackendSet& set = frontend->backends(key.source, *snapshot.cluster_clients);
        std::string which;
        if (frontend->inside_set != frontend->set) {
            which = "; backend set " + std::to_string(&set - frontend->service->sets.data()) +
                    ", because the client is " +
                    (snapshot.cluster_clients->are_inside(key.source) ? "inside" : "outside") +
                    " the cluster's Pod CIDRs";
        }
        return destination + " is a frontend of " + frontend->service->display_name() + " (" +
               lb::to_string(frontend->cls) + ")" + which +
               "; usable backends: " + std::to_string(set.usable.size()) +
               "; source: " + lb::to_string(set.source);
    }
    if (snapshot.routes->is_local(key.destination)) {
        return destination + " is not a frontend but an address of the host: Linux decides";
    }
    if (snapshot.services->is_vip(key.destination)) {
        return "the address belongs to a Service, but no Service declares " +
               std::string(to_string(key.protocol)) + " port " + std::to_string(key.destination_port);
    }
    const bool is_from_endpoint =
        snapshot.services->is_kept_backend(key.source, key.source_port, key.protocol);
    return destination + " belongs to no Service" +
           (is_from_endpoint ? "; the source is an endpoint of a Service" : ": Linux decides");
}

std::string reverse_path_text(const config::Snapshot& snapshot, const IpAddr& source, NicPortId port) {
    const std::string from = source.to_string();
    const route::RouteTable& routes = *snapshot.routes;
    const std::string mode = std::string(", not NicPort ") + std::to_string(port.value) +
                             " where the packet arrives (--reverse-path " +
                             config::to_string(snapshot.packets.reverse_path[port.value]) + ")";
    switch (pipeline::source_path(snapshot, source, port)) {
        case pipeline::SourcePath::Ok:
            break;
        case pipeline::SourcePath::NoRoute:
            return "there is no route to the source " + from +
                   " through a port of the gateway (--reverse-path)";
        case pipeline::SourcePath::OtherPort:
            return "the route to the source " + from + " leads through " +
                   ports_text(routes.ports_towards(source)) + mode;
        case pipeline::SourcePath::OtherSubnet:
            return "the source " + from + " is in a subnet directly connected to " +
                   ports_text(routes.connected_ports(source)) + mode;
        case pipeline::SourcePath::InsideElsewhere:
            return "the source " + from + " is in a Pod CIDR, and its route leads through " +
                   ports_text(routes.ports_towards(source)) + mode;
        case pipeline::SourcePath::EndpointElsewhere:
            return "the source " + from + " is an endpoint, and its route leads through " +
                   ports_text(routes.ports_towards(source)) + mode;
    }
    return "";
}

std::string rejection_text(const config::Snapshot& snapshot, const packet::FlowKey& key,
                           const pipeline::Admission& admission) {
    const char* const answer = key.protocol == Protocol::Tcp                                    ? "RST"
                               : key.protocol == Protocol::Sctp && snapshot.packets.aborts_sctp ? "ABORT"
                               : key.destination.is_v4() ? "ICMP port unreachable"
                                                         : "ICMPv6 port unreachable";
    const std::string rejected = std::string("rejected with ") + answer + ": ";
    if (admission.frontend == nullptr) {
        return rejected + "the address belongs to Services, and closed ports are rejected (vip-closed-port)";
    }
    if (admission.set == nullptr) {
        return mid_stream_text(snapshot);
    }
    return rejected + "the Service has no usable endpoint";
}

std::string selection_text(const nat::ReplyRule* rule, WorkerId owner) {
    const std::string worker = "worker " + std::to_string(owner.value);
    return rule == nullptr ? "of " + worker + "'s share"
                           : "for which RSS of NicPort " + std::to_string(rule->port().value) +
                                 " delivers the reply to " + worker;
}

std::string connection_text(const KnownConnection& known, const CoarseClock& clock, CoarseTime now) {
    const bool is_copied = known.unit == KnownConnection::kCopied;
    return std::string(is_copied ? "taken over from the copy of the connection: " : "") +
           (known.direction == conn::Direction::Forward ? "forward" : "reverse") +
           " direction of a connection " + (is_copied ? "of another gateway, for worker " : "on worker ") +
           std::to_string(known.worker.value) + ", " + std::string(known.connection.state_name()) +
           ", idle for " +
           std::to_string(clock.to_milliseconds(units_between(known.connection.last_seen, now))) + " ms";
}

std::string snat_address_text(const nat::SnatAddress& address, uint8_t group) {
    std::string text = address.address.to_string();
    if (group == 0) {
        return text;
    }
    const std::string share = "share " + std::to_string(group - 1);
    return address.group == group
               ? text + " of " + share
               : text + " (" + share + " has no SNAT address of " + to_string(address.address.family()) + ")";
}

// The worker examines only some of the ports (pipeline/opening/reclaim.cpp), so the result is not predicted.
std::string reclaim_text(const SnatForecast::PortUse& use) {
    return ": all " + std::to_string(use.usable) + " are taken, and " + std::to_string(use.reclaimable) +
           " are of connections that may be evicted (half-open, finished, brief); the worker examines "
           "some of the ports and drops the packet (snat_ports_exhausted) if it may evict none of these";
}

}  // namespace penstock::worker
