#include "control/rpc/convert.hpp"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "dataplane/base/limits.hpp"

namespace penstock::rpc {
namespace {

std::unexpected<Error> invalid(std::string what) {
    return fail(Errc::InvalidArgument, std::move(what));
}

template <typename Enum>
std::unexpected<Error> unknown(const char* name, Enum value) {
    return invalid(std::string(name) + " " + std::to_string(static_cast<int>(value)) + " is unknown to this version");
}

std::string indexed(const char* list, int index) {
    return std::string(list) + "[" + std::to_string(index) + "]";
}

// Names reach logs, metrics and terminals: printable ASCII without the marks that join them into "namespace/name:port/TCP".
Status check_name(const char* field, std::string_view name, bool may_be_empty) {
    if (name.empty() && !may_be_empty) {
        return invalid(std::string(field) + " is empty");
    }
    if (name.size() > kNameBytesMax) {
        return invalid(std::string(field) + " is longer than " + std::to_string(kNameBytesMax) + " bytes");
    }
    for (const char c : name) {
        if (c <= ' ' || c > '~' || c == '/' || c == ':') {
            return invalid(std::string(field) + " holds a character other than printable ASCII without space, '/' and ':'");
        }
    }
    return {};
}

// The rule that the Kubernetes API has for endpoint addresses; link-local is allowed for nobody, since it means nothing beyond one link.
Status check_unicast(const IpAddr& address) {
    const char* why = address.is_unspecified()   ? "unspecified"
                      : address.is_loopback()    ? "loopback"
                      : address.is_link_local()  ? "link-local"
                      : address.is_multicast()   ? "multicast"
                      : address.is_reserved_v4() ? "reserved"
                                                 : nullptr;
    if (why != nullptr) {
        return invalid("address " + address.to_string() + " is " + why);
    }
    return {};
}

Result<IpAddr> unicast_address(std::string_view text) {
    auto address = IpAddr::parse(text);
    if (!address) {
        return in_context("address", std::move(address.error()));
    }
    if (auto status = check_unicast(*address); !status) {
        return std::unexpected(std::move(status.error()));
    }
    return *address;
}

Result<model::Endpoint> endpoint_from(const v1::Endpoint& message, IpFamily family) {
    auto address = unicast_address(message.address());
    if (!address) {
        return std::unexpected(std::move(address.error()));
    }
    if (address->family() != family) {
        return invalid("address " + address->to_string() + " is not of the set's family, " + to_string(family));
    }
    const auto port = l4_port(message.port());
    if (!port) {
        return std::unexpected(port.error());
    }
    const uint32_t weight = message.has_weight() ? message.weight() : 1;
    if (weight > 65535) {
        return invalid("weight " + std::to_string(weight) + " is not in 0-65535");
    }
    if (auto status = check_name("node_name", message.node_name(), true); !status) {
        return std::unexpected(std::move(status.error()));
    }
    if (message.zone().size() > kNameBytesMax) {
        return invalid("zone is longer than " + std::to_string(kNameBytesMax) + " bytes");
    }
    return model::Endpoint{*address, *port, static_cast<uint16_t>(weight), message.node_name(), message.zone()};
}

// One that is not at all one of ours keeps its name for the error.
Result<model::Exclusion> exclusion_from(v1::ExcludedEndpoint::Why why) {
    switch (why) {
        case v1::ExcludedEndpoint::WHY_FORBIDDEN_ADDRESS:
            return model::Exclusion::ForbiddenAddress;
        case v1::ExcludedEndpoint::WHY_NODE_SELECTOR:
            return model::Exclusion::NodeSelector;
        case v1::ExcludedEndpoint::WHY_NOT_READY:
            return model::Exclusion::NotReady;
        case v1::ExcludedEndpoint::WHY_TERMINATING:
            return model::Exclusion::Terminating;
        case v1::ExcludedEndpoint::WHY_NOT_LOCAL:
            return model::Exclusion::NotLocal;
        case v1::ExcludedEndpoint::WHY_TOPOLOGY_KEYS:
            return model::Exclusion::TopologyKeys;
        case v1::ExcludedEndpoint::WHY_TOPOLOGY_HINTS:
            return model::Exclusion::TopologyHints;
        default:
            return unknown("reason of exclusion", why);
    }
}

v1::ExcludedEndpoint::Why to_proto(model::Exclusion why) {
    switch (why) {
        case model::Exclusion::ForbiddenAddress:
            return v1::ExcludedEndpoint::WHY_FORBIDDEN_ADDRESS;
        case model::Exclusion::NodeSelector:
            return v1::ExcludedEndpoint::WHY_NODE_SELECTOR;
        case model::Exclusion::NotReady:
            return v1::ExcludedEndpoint::WHY_NOT_READY;
        case model::Exclusion::Terminating:
            return v1::ExcludedEndpoint::WHY_TERMINATING;
        case model::Exclusion::NotLocal:
            return v1::ExcludedEndpoint::WHY_NOT_LOCAL;
        case model::Exclusion::TopologyKeys:
            return v1::ExcludedEndpoint::WHY_TOPOLOGY_KEYS;
        case model::Exclusion::TopologyHints:
            return v1::ExcludedEndpoint::WHY_TOPOLOGY_HINTS;
    }
    return v1::ExcludedEndpoint::WHY_UNSPECIFIED;
}

Result<model::ExcludedEndpoint> excluded_from(const v1::ExcludedEndpoint& message, IpFamily family) {
    const std::string& bytes = message.address();
    model::ExcludedEndpoint out;
    if (bytes.size() != (family == IpFamily::V4 ? 4 : 16)) {
        return invalid("an address of " + std::to_string(bytes.size()) + " bytes is not of the set's family, " + to_string(family));
    }
    if (family == IpFamily::V4) {
        const auto at = [&](size_t i) { return static_cast<uint8_t>(bytes[i]); };
        out.address = IpAddr::v4(at(0), at(1), at(2), at(3));
    } else {
        std::array<uint8_t, 16> octets;
        std::ranges::copy(bytes, octets.begin());
        out.address = IpAddr::v6(octets);
    }
    const auto port = l4_port(message.port());
    if (!port) {
        return std::unexpected(port.error());
    }
    out.port = *port;
    const auto why = exclusion_from(message.why());
    if (!why) {
        return std::unexpected(why.error());
    }
    out.why = *why;
    out.serving = !message.not_serving();
    return out;
}

v1::ExcludedEndpoint to_proto(const model::ExcludedEndpoint& excluded) {
    v1::ExcludedEndpoint message;
    const auto& bytes = excluded.address.bytes();
    const size_t from = excluded.address.is_v4() ? bytes.size() - 4 : 0;
    message.set_address(bytes.data() + from, bytes.size() - from);
    message.set_port(excluded.port);
    message.set_why(to_proto(excluded.why));
    message.set_not_serving(!excluded.serving);
    return message;
}

Result<uint32_t> within(const char* field, uint32_t value, uint32_t least, uint32_t most) {
    if (value < least || value > most) {
        return invalid(std::string(field) + " " + std::to_string(value) + " is not in " + std::to_string(least) + "-" +
                       std::to_string(most));
    }
    return value;
}

Result<model::Probe> probe_from(const v1::Probe& message) {
    model::Probe probe;
    switch (message.kind()) {
        case v1::Probe::KIND_TCP:
            probe.kind = model::Probe::Kind::Tcp;
            break;
        case v1::Probe::KIND_HTTP:
            probe.kind = model::Probe::Kind::Http;
            break;
        default:
            return unknown("kind", message.kind());
    }
    if (message.port() > 65535) {
        return invalid("port " + std::to_string(message.port()) + " is not in 0-65535");
    }
    probe.port = static_cast<L4Port>(message.port());
    for (const auto& [field, value, least, most, target] : {std::tuple("interval_s", message.interval_s(), 1U, 3600U, &probe.interval_s),
                                                            std::tuple("timeout_s", message.timeout_s(), 1U, 3600U, &probe.timeout_s),
                                                            std::tuple("healthy", message.healthy(), 1U, 100U, &probe.healthy),
                                                            std::tuple("unhealthy", message.unhealthy(), 1U, 100U, &probe.unhealthy)}) {
        const auto good = within(field, value, least, most);
        if (!good) {
            return std::unexpected(good.error());
        }
        *target = *good;
    }
    if (probe.timeout_s >= probe.interval_s) {
        return invalid("timeout_s " + std::to_string(probe.timeout_s) + " is not less than interval_s " + std::to_string(probe.interval_s));
    }
    if (message.path().size() > kProbePathBytesMax) {
        return invalid("path is longer than " + std::to_string(kProbePathBytesMax) + " bytes");
    }
    // It becomes a line of a request: nothing in it may end that line, or begin another word.
    if (!message.path().empty() &&
        (message.path().front() != '/' || !std::ranges::all_of(message.path(), [](char c) { return c > ' ' && c < 0x7f; }))) {
        return invalid("path must begin with / and hold no blanks or control characters");
    }
    if (!message.path().empty()) {
        probe.path = message.path();
    }
    probe.fails_closed = message.fails_closed();
    return probe;
}

v1::Probe to_proto(const model::Probe& probe) {
    v1::Probe message;
    message.set_kind(probe.kind == model::Probe::Kind::Tcp ? v1::Probe::KIND_TCP : v1::Probe::KIND_HTTP);
    message.set_port(probe.port);
    message.set_path(probe.path);
    message.set_interval_s(probe.interval_s);
    message.set_timeout_s(probe.timeout_s);
    message.set_healthy(probe.healthy);
    message.set_unhealthy(probe.unhealthy);
    message.set_fails_closed(probe.fails_closed);
    return message;
}

template <typename T>
void sort_unique(std::vector<T>& values) {
    std::ranges::sort(values);
    const auto repeated = std::ranges::unique(values);
    values.erase(repeated.begin(), repeated.end());
}

Result<model::BackendSet> backend_set_from(const v1::BackendSet& message) {
    model::BackendSet set;
    set.family = message.ipv6() ? IpFamily::V6 : IpFamily::V4;
    const auto source = from_proto(message.source());
    if (!source) {
        return std::unexpected(source.error());
    }
    set.source = *source;
    const auto when_empty = from_proto(message.when_empty());
    if (!when_empty) {
        return std::unexpected(when_empty.error());
    }
    set.when_empty = *when_empty;
    if (static_cast<uint32_t>(message.endpoints_size()) > limits::kBackendsPerServiceMax) {
        return invalid("endpoints: more than " + std::to_string(limits::kBackendsPerServiceMax));
    }
    set.endpoints.reserve(static_cast<size_t>(message.endpoints_size()));
    for (int i = 0; i < message.endpoints_size(); ++i) {
        auto endpoint = endpoint_from(message.endpoints(i), set.family);
        if (!endpoint) {
            // Joined here, not by in_context, so that the path reads "sets[0].endpoints[3]: ...".
            return invalid(indexed("endpoints", i) + ": " + endpoint.error().what);
        }
        set.endpoints.push_back(std::move(*endpoint));
    }
    const auto place = [](const model::Endpoint& e) { return std::tie(e.address, e.port); };
    std::ranges::sort(set.endpoints, {}, place);
    const auto twice = std::ranges::adjacent_find(set.endpoints, {}, place);
    if (twice != set.endpoints.end()) {
        return invalid("endpoints: " + socket_text(twice->address, twice->port) + " is there twice");
    }
    if (static_cast<uint32_t>(message.excluded_size()) > limits::kBackendsPerServiceMax) {
        return invalid("excluded: more than " + std::to_string(limits::kBackendsPerServiceMax));
    }
    set.excluded.reserve(static_cast<size_t>(message.excluded_size()));
    for (int i = 0; i < message.excluded_size(); ++i) {
        const auto excluded = excluded_from(message.excluded(i), set.family);
        if (!excluded) {
            return invalid(indexed("excluded", i) + ": " + excluded.error().what);
        }
        set.excluded.push_back(*excluded);
    }
    const auto place_of = [](const auto& e) { return std::tie(e.address, e.port); };
    std::ranges::sort(set.excluded, {}, place_of);
    for (size_t i = 0; i < set.excluded.size(); ++i) {
        const auto& excluded = set.excluded[i];
        if ((i > 0 && place_of(set.excluded[i - 1]) == place_of(excluded)) ||
            std::ranges::binary_search(set.endpoints, place_of(excluded), {}, place)) {
            return invalid("excluded: " + socket_text(excluded.address, excluded.port) + " is there twice");
        }
    }
    return set;
}

Result<model::Frontend> frontend_from(const v1::Frontend& message, const std::vector<model::BackendSet>& sets) {
    model::Frontend frontend;
    const auto cls = from_proto(message.class_());
    if (!cls) {
        return std::unexpected(cls.error());
    }
    frontend.cls = *cls;
    if (frontend.cls == lb::FrontendClass::NodePort) {
        if (!message.address().empty()) {
            return invalid("a NODE_PORT frontend has no address of its own, but " + message.address() + " is given");
        }
        frontend.family = message.ipv6() ? IpFamily::V6 : IpFamily::V4;
    } else {
        const auto address = unicast_address(message.address());
        if (!address) {
            return std::unexpected(address.error());
        }
        frontend.address = *address;
        frontend.family = address->family();
    }
    const auto port = l4_port(message.port());
    if (!port) {
        return std::unexpected(port.error());
    }
    frontend.port = *port;
    for (const auto& [field, number] :
         {std::pair("set", message.set()), std::pair("inside_set", message.has_inside_set() ? message.inside_set() : message.set())}) {
        if (number >= sets.size()) {
            return invalid(std::string(field) + " " + std::to_string(number) + " does not exist; the last one is " +
                           std::to_string(sets.size() - 1));
        }
        if (sets[number].family != frontend.family) {
            return invalid(std::string("an ") + to_string(frontend.family) + " frontend uses " + field + " " + std::to_string(number) +
                           ", which is of family " + to_string(sets[number].family));
        }
    }
    frontend.set = static_cast<uint8_t>(message.set());
    if (message.has_inside_set()) {
        frontend.inside_set = static_cast<uint8_t>(message.inside_set());
    }
    frontend.filtered = message.filtered();
    return frontend;
}

// Everything behind the key; errors still lack the service's name.
Result<model::Service> service_from(const v1::Service& message, model::ServiceKey key) {
    model::Service service{.key = std::move(key)};
    const auto service_port = l4_port(message.service_port());
    if (!service_port) {
        return in_context("service_port", service_port.error());
    }
    service.service_port = *service_port;
    const auto scheduler = from_proto(message.scheduler());
    if (!scheduler) {
        return std::unexpected(scheduler.error());
    }
    service.scheduler = *scheduler;
    if (message.sets_size() < 1 || message.sets_size() > kBackendSetsMax) {
        return invalid("sets: there are " + std::to_string(message.sets_size()) + ", not 1-" + std::to_string(kBackendSetsMax));
    }
    for (int i = 0; i < message.sets_size(); ++i) {
        auto set = backend_set_from(message.sets(i));
        if (!set) {
            return invalid(indexed("sets", i) + (set.error().what.starts_with("endpoints[") ? "." : ": ") + set.error().what);
        }
        service.sets.push_back(std::move(*set));
    }
    std::set<std::tuple<bool, IpFamily, IpAddr, L4Port>> tuples;
    for (int i = 0; i < message.frontends_size(); ++i) {
        auto frontend = frontend_from(message.frontends(i), service.sets);
        if (!frontend) {
            return in_context(indexed("frontends", i), std::move(frontend.error()));
        }
        const bool node_port = frontend->cls == lb::FrontendClass::NodePort;
        if (!tuples.emplace(node_port, frontend->family, frontend->address, frontend->port).second) {
            return invalid(indexed("frontends", i) + ": " +
                           (node_port ? "NodePort " + std::to_string(frontend->port) : socket_text(frontend->address, frontend->port)) +
                           " is there twice");
        }
        service.frontends.push_back(std::move(*frontend));
    }
    for (int i = 0; i < message.source_ranges_size(); ++i) {
        auto range = Prefix::parse(message.source_ranges(i));
        if (!range) {
            return in_context(indexed("source_ranges", i), std::move(range.error()));
        }
        service.source_ranges.push_back(*range);
    }
    sort_unique(service.source_ranges);
    service.source_ranges_deny = message.source_ranges_deny();
    for (int i = 0; i < message.notices_size(); ++i) {
        auto notice = from_proto(message.notices(i));
        if (!notice) {
            return in_context(indexed("notices", i), std::move(notice.error()));
        }
        service.notices.push_back(std::move(*notice));
    }
    service.uid = message.uid();
    service.affinity_timeout_s = message.affinity_timeout_s();
    service.idle_timeout_s = message.idle_timeout_s();
    if (message.has_drain_timeout_s()) {
        service.drain_timeout_s = message.drain_timeout_s();
    }
    if (message.has_health_check()) {
        const auto port = l4_port(message.health_check().port());
        if (!port) {
            return in_context("health_check", port.error());
        }
        service.health_check = {*port, message.health_check().local_endpoints()};
    }
    if (message.has_probe()) {
        auto probe = probe_from(message.probe());
        if (!probe) {
            return in_context("probe", std::move(probe.error()));
        }
        service.probe = std::move(*probe);
    }
    return service;
}

}  // namespace

v1::Protocol to_proto(Protocol protocol) {
    switch (protocol) {
        case Protocol::Tcp:
            return v1::PROTOCOL_TCP;
        case Protocol::Udp:
            return v1::PROTOCOL_UDP;
        case Protocol::Sctp:
            return v1::PROTOCOL_SCTP;
    }
    return v1::PROTOCOL_UNSPECIFIED;
}

v1::Scheduler to_proto(lb::SchedulerKind scheduler) {
    switch (scheduler) {
        case lb::SchedulerKind::RoundRobin:
            return v1::SCHEDULER_RR;
        case lb::SchedulerKind::Random:
            return v1::SCHEDULER_RANDOM;
        case lb::SchedulerKind::Maglev:
            return v1::SCHEDULER_MH;
        case lb::SchedulerKind::WeightedRoundRobin:
            return v1::SCHEDULER_WRR;
        case lb::SchedulerKind::LeastConnection:
            return v1::SCHEDULER_LC;
        case lb::SchedulerKind::WeightedLeastConnection:
            return v1::SCHEDULER_WLC;
        case lb::SchedulerKind::SourceHash:
            return v1::SCHEDULER_SH;
        case lb::SchedulerKind::DestinationHash:
            return v1::SCHEDULER_DH;
        case lb::SchedulerKind::ShortestExpectedDelay:
            return v1::SCHEDULER_SED;
        case lb::SchedulerKind::NeverQueue:
            return v1::SCHEDULER_NQ;
        case lb::SchedulerKind::TwoChoices:
            return v1::SCHEDULER_P2C;
    }
    return v1::SCHEDULER_UNSPECIFIED;
}

v1::SourceMode to_proto(lb::SourceMode mode) {
    switch (mode) {
        case lb::SourceMode::Translate:
            return v1::SOURCE_MODE_TRANSLATE;
        case lb::SourceMode::Keep:
            return v1::SOURCE_MODE_KEEP;
    }
    return v1::SOURCE_MODE_UNSPECIFIED;
}

v1::EmptyAction to_proto(lb::EmptyAction action) {
    switch (action) {
        case lb::EmptyAction::Reject:
            return v1::EMPTY_ACTION_REJECT;
        case lb::EmptyAction::Drop:
            return v1::EMPTY_ACTION_DROP;
        case lb::EmptyAction::DropNoLocal:
            return v1::EMPTY_ACTION_DROP_NO_LOCAL;
    }
    return v1::EMPTY_ACTION_UNSPECIFIED;
}

v1::FrontendClass to_proto(lb::FrontendClass cls) {
    switch (cls) {
        case lb::FrontendClass::ClusterIp:
            return v1::FRONTEND_CLASS_CLUSTER_IP;
        case lb::FrontendClass::LoadBalancerIp:
            return v1::FRONTEND_CLASS_LOAD_BALANCER_IP;
        case lb::FrontendClass::ExternalIp:
            return v1::FRONTEND_CLASS_EXTERNAL_IP;
        case lb::FrontendClass::NodePort:
            return v1::FRONTEND_CLASS_NODE_PORT;
    }
    return v1::FRONTEND_CLASS_UNSPECIFIED;
}

v1::Identity::Mode to_proto(model::GatewayMode mode) {
    switch (mode) {
        case model::GatewayMode::Node:
            return v1::Identity::MODE_NODE;
        case model::GatewayMode::External:
            return v1::Identity::MODE_EXTERNAL;
    }
    return v1::Identity::MODE_UNSPECIFIED;
}

v1::SocketAddress to_proto(const IpAddr& address, L4Port port) {
    v1::SocketAddress message;
    message.set_address(address.to_string());
    message.set_port(port);
    return message;
}

v1::ServiceKey to_proto(const model::ServiceKey& key) {
    v1::ServiceKey message;
    message.set_namespace_(key.namespace_name);
    message.set_name(key.name);
    message.set_port_name(key.port_name);
    message.set_protocol(to_proto(key.protocol));
    return message;
}

v1::Notice to_proto(const model::Notice& notice) {
    v1::Notice message;
    message.set_level(notice.level == model::Notice::Level::Normal ? v1::Notice::LEVEL_NORMAL : v1::Notice::LEVEL_WARNING);
    message.set_reason(notice.reason);
    message.set_message(notice.message);
    return message;
}

v1::ObservedNotice to_proto(const model::ObservedNotice& observed) {
    v1::ObservedNotice message;
    *message.mutable_key() = to_proto(observed.key);
    *message.mutable_notice() = to_proto(observed.notice);
    return message;
}

v1::Endpoint to_proto(const model::Endpoint& endpoint) {
    v1::Endpoint message;
    message.set_address(endpoint.address.to_string());
    message.set_port(endpoint.port);
    if (endpoint.weight != 1) {
        message.set_weight(endpoint.weight);
    }
    message.set_node_name(endpoint.node_name.value());
    message.set_zone(endpoint.zone.value());
    return message;
}

v1::Service to_proto(const model::Service& service) {
    v1::Service message;
    *message.mutable_key() = to_proto(service.key);
    message.set_service_port(service.service_port);
    message.set_scheduler(to_proto(service.scheduler));
    for (const auto& set : service.sets) {
        auto& out = *message.add_sets();
        out.set_source(to_proto(set.source));
        out.set_when_empty(to_proto(set.when_empty));
        out.set_ipv6(set.family == IpFamily::V6);
        out.mutable_endpoints()->Reserve(static_cast<int>(set.endpoints.size()));
        for (const auto& endpoint : set.endpoints) {
            *out.add_endpoints() = to_proto(endpoint);
        }
        for (const auto& excluded : set.excluded) {
            *out.add_excluded() = to_proto(excluded);
        }
    }
    for (const auto& frontend : service.frontends) {
        auto& out = *message.add_frontends();
        out.set_class_(to_proto(frontend.cls));
        if (frontend.cls == lb::FrontendClass::NodePort) {
            out.set_ipv6(frontend.family == IpFamily::V6);
        } else {
            out.set_address(frontend.address.to_string());
        }
        out.set_port(frontend.port);
        out.set_set(frontend.set);
        out.set_filtered(frontend.filtered);
        if (frontend.inside_set) {
            out.set_inside_set(*frontend.inside_set);
        }
    }
    for (const auto& range : service.source_ranges) {
        message.add_source_ranges(range.to_string());
    }
    message.set_source_ranges_deny(service.source_ranges_deny);
    for (const auto& notice : service.notices) {
        *message.add_notices() = to_proto(notice);
    }
    message.set_uid(service.uid.value());
    message.set_affinity_timeout_s(service.affinity_timeout_s);
    message.set_idle_timeout_s(service.idle_timeout_s);
    if (service.drain_timeout_s) {
        message.set_drain_timeout_s(*service.drain_timeout_s);
    }
    if (service.health_check) {
        message.mutable_health_check()->set_port(service.health_check->port);
        message.mutable_health_check()->set_local_endpoints(service.health_check->local_endpoints);
    }
    if (service.probe) {
        *message.mutable_probe() = to_proto(*service.probe);
    }
    return message;
}

v1::Environment to_proto(const model::Environment& environment) {
    v1::Environment message;
    *message.mutable_node_ports() = to_proto(environment.node_ports);
    for (const auto& cidr : environment.pod_cidrs) {
        message.add_pod_cidrs(cidr.to_string());
    }
    message.set_rejects_closed_vip_ports(environment.rejects_closed_vip_ports);
    message.set_node_not_eligible(!environment.node_eligible);
    return message;
}

v1::NodePortAddresses to_proto(const model::NodePortAddresses& addresses) {
    v1::NodePortAddresses message;
    for (const auto& prefix : addresses.within) {
        message.add_within(prefix.to_string());
    }
    message.set_primary_only(addresses.primary_only);
    for (const auto& address : addresses.node_addresses) {
        message.add_node_addresses(address.to_string());
    }
    return message;
}

v1::Identity to_proto(const model::GatewayIdentity& identity) {
    v1::Identity message;
    message.set_gateway_name(identity.gateway_name);
    message.set_mode(to_proto(identity.mode));
    message.set_node_name(identity.node_name);
    message.mutable_labels()->insert(identity.labels.begin(), identity.labels.end());
    for (const auto& address : identity.addresses) {
        auto& out = *message.add_addresses();
        out.set_port_name(address.port_name);
        out.set_address(address.address.to_string());
        out.set_prefix_length(address.prefix_length);
        out.set_configured(address.configured);
    }
    for (const auto& prefix : identity.routed_prefixes) {
        message.add_routed_prefixes(prefix.to_string());
    }
    return message;
}

Result<Protocol> from_proto(v1::Protocol protocol) {
    switch (protocol) {
        case v1::PROTOCOL_UNSPECIFIED:
            return invalid("protocol is missing");
        case v1::PROTOCOL_TCP:
            return Protocol::Tcp;
        case v1::PROTOCOL_UDP:
            return Protocol::Udp;
        case v1::PROTOCOL_SCTP:
            return Protocol::Sctp;
        default:
            return unknown("protocol", protocol);
    }
}

Result<lb::SchedulerKind> from_proto(v1::Scheduler scheduler) {
    switch (scheduler) {
        case v1::SCHEDULER_UNSPECIFIED:
        case v1::SCHEDULER_RR:
            return lb::SchedulerKind::RoundRobin;
        case v1::SCHEDULER_RANDOM:
            return lb::SchedulerKind::Random;
        case v1::SCHEDULER_MH:
            return lb::SchedulerKind::Maglev;
        case v1::SCHEDULER_WRR:
            return lb::SchedulerKind::WeightedRoundRobin;
        case v1::SCHEDULER_LC:
            return lb::SchedulerKind::LeastConnection;
        case v1::SCHEDULER_WLC:
            return lb::SchedulerKind::WeightedLeastConnection;
        case v1::SCHEDULER_SH:
            return lb::SchedulerKind::SourceHash;
        case v1::SCHEDULER_DH:
            return lb::SchedulerKind::DestinationHash;
        case v1::SCHEDULER_SED:
            return lb::SchedulerKind::ShortestExpectedDelay;
        case v1::SCHEDULER_NQ:
            return lb::SchedulerKind::NeverQueue;
        case v1::SCHEDULER_P2C:
            return lb::SchedulerKind::TwoChoices;
        default:
            return unknown("scheduler", scheduler);
    }
}

Result<lb::SourceMode> from_proto(v1::SourceMode mode) {
    switch (mode) {
        case v1::SOURCE_MODE_UNSPECIFIED:
        case v1::SOURCE_MODE_TRANSLATE:
            return lb::SourceMode::Translate;
        case v1::SOURCE_MODE_KEEP:
            return lb::SourceMode::Keep;
        default:
            return unknown("source mode", mode);
    }
}

Result<lb::EmptyAction> from_proto(v1::EmptyAction action) {
    switch (action) {
        case v1::EMPTY_ACTION_UNSPECIFIED:
        case v1::EMPTY_ACTION_REJECT:
            return lb::EmptyAction::Reject;
        case v1::EMPTY_ACTION_DROP:
            return lb::EmptyAction::Drop;
        case v1::EMPTY_ACTION_DROP_NO_LOCAL:
            return lb::EmptyAction::DropNoLocal;
        default:
            return unknown("empty action", action);
    }
}

Result<lb::FrontendClass> from_proto(v1::FrontendClass cls) {
    switch (cls) {
        case v1::FRONTEND_CLASS_UNSPECIFIED:
            return invalid("frontend class is missing");
        case v1::FRONTEND_CLASS_CLUSTER_IP:
            return lb::FrontendClass::ClusterIp;
        case v1::FRONTEND_CLASS_LOAD_BALANCER_IP:
            return lb::FrontendClass::LoadBalancerIp;
        case v1::FRONTEND_CLASS_EXTERNAL_IP:
            return lb::FrontendClass::ExternalIp;
        case v1::FRONTEND_CLASS_NODE_PORT:
            return lb::FrontendClass::NodePort;
        default:
            return unknown("frontend class", cls);
    }
}

Result<model::GatewayMode> from_proto(v1::Identity::Mode mode) {
    switch (mode) {
        case v1::Identity::MODE_UNSPECIFIED:
            return invalid("mode is missing");
        case v1::Identity::MODE_NODE:
            return model::GatewayMode::Node;
        case v1::Identity::MODE_EXTERNAL:
            return model::GatewayMode::External;
        default:
            return unknown("mode", mode);
    }
}

Result<model::ServiceKey> from_proto(const v1::ServiceKey& key) {
    const auto protocol = from_proto(key.protocol());
    if (!protocol) {
        return std::unexpected(protocol.error());
    }
    for (const auto& [field, name, may_be_empty] :
         {std::tuple("namespace", std::string_view(key.namespace_()), false), std::tuple("name", std::string_view(key.name()), false),
          std::tuple("port_name", std::string_view(key.port_name()), true)}) {
        if (auto status = check_name(field, name, may_be_empty); !status) {
            return std::unexpected(std::move(status.error()));
        }
    }
    return model::ServiceKey{key.namespace_(), key.name(), key.port_name(), *protocol};
}

Result<model::Notice> from_proto(const v1::Notice& notice) {
    model::Notice out{model::Notice::Level::Warning, notice.reason(), notice.message()};
    switch (notice.level()) {
        case v1::Notice::LEVEL_UNSPECIFIED:
        case v1::Notice::LEVEL_WARNING:
            break;
        case v1::Notice::LEVEL_NORMAL:
            out.level = model::Notice::Level::Normal;
            break;
        default:
            return unknown("notice level", notice.level());
    }
    return out;
}

Result<model::ObservedNotice> from_proto(const v1::ObservedNotice& observed) {
    auto key = from_proto(observed.key());
    auto notice = from_proto(observed.notice());
    if (!key || !notice) {
        return in_context("observed notice about " + text_of(observed.key()), !key ? key.error() : notice.error());
    }
    return model::ObservedNotice{std::move(*key), std::move(*notice)};
}

Result<model::Service> from_proto(const v1::Service& service) {
    auto key = from_proto(service.key());
    auto out = key ? service_from(service, std::move(*key)) : Result<model::Service>(std::unexpected(std::move(key.error())));
    if (!out) {
        return in_context("service " + text_of(service.key()), std::move(out.error()));
    }
    return out;
}

Result<model::NodePortAddresses> from_proto(const v1::NodePortAddresses& addresses) {
    model::NodePortAddresses out;
    out.primary_only = addresses.primary_only();
    for (int i = 0; i < addresses.within_size(); ++i) {
        auto prefix = Prefix::parse(addresses.within(i));
        if (!prefix) {
            return in_context("node_ports." + indexed("within", i), std::move(prefix.error()));
        }
        out.within.push_back(*prefix);
    }
    for (int i = 0; i < addresses.node_addresses_size(); ++i) {
        auto address = IpAddr::parse(addresses.node_addresses(i));
        if (!address) {
            return in_context("node_ports." + indexed("node_addresses", i), std::move(address.error()));
        }
        out.node_addresses.push_back(*address);
    }
    return out;
}

Result<model::Environment> from_proto(const v1::Environment& environment) {
    model::Environment out;
    auto node_ports = from_proto(environment.node_ports());
    if (!node_ports) {
        return invalid("environment." + node_ports.error().what);
    }
    out.node_ports = std::move(*node_ports);
    for (int i = 0; i < environment.pod_cidrs_size(); ++i) {
        auto cidr = Prefix::parse(environment.pod_cidrs(i));
        if (!cidr) {
            return in_context("environment." + indexed("pod_cidrs", i), std::move(cidr.error()));
        }
        out.pod_cidrs.push_back(*cidr);
    }
    sort_unique(out.pod_cidrs);
    out.rejects_closed_vip_ports = environment.rejects_closed_vip_ports();
    out.node_eligible = !environment.node_not_eligible();
    return out;
}

Result<model::GatewayIdentity> from_proto(const v1::Identity& identity) {
    model::GatewayIdentity out;
    const std::string context = "identity of gateway \"" + identity.gateway_name() + "\"";
    if (auto status = check_name("gateway_name", identity.gateway_name(), false); !status) {
        return in_context("identity", std::move(status.error()));
    }
    out.gateway_name = identity.gateway_name();
    const auto mode = from_proto(identity.mode());
    if (!mode) {
        return in_context(context, mode.error());
    }
    out.mode = *mode;
    if (auto status = check_name("node_name", identity.node_name(), out.mode == model::GatewayMode::External); !status) {
        return in_context(context, std::move(status.error()));
    }
    out.node_name = identity.node_name();
    out.labels.insert(identity.labels().begin(), identity.labels().end());
    for (int i = 0; i < identity.addresses_size(); ++i) {
        const auto& in = identity.addresses(i);
        auto address = IpAddr::parse(in.address());
        if (!address) {
            return in_context(context + ": " + indexed("addresses", i), std::move(address.error()));
        }
        if (in.prefix_length() > address->bits()) {
            return in_context(context + ": " + indexed("addresses", i),
                              {Errc::InvalidArgument,
                               "prefix length " + std::to_string(in.prefix_length()) + " is not in 0-" + std::to_string(address->bits())});
        }
        out.addresses.push_back({in.port_name(), *address, static_cast<uint8_t>(in.prefix_length()), in.configured()});
    }
    std::ranges::sort(out.addresses);
    if (static_cast<size_t>(identity.routed_prefixes_size()) > model::kRoutedPrefixesMax) {
        return in_context(context, {Errc::InvalidArgument, "routed_prefixes: more than " + std::to_string(model::kRoutedPrefixesMax)});
    }
    for (int i = 0; i < identity.routed_prefixes_size(); ++i) {
        auto prefix = Prefix::parse(identity.routed_prefixes(i));
        if (!prefix) {
            return in_context(context + ": " + indexed("routed_prefixes", i), std::move(prefix.error()));
        }
        out.routed_prefixes.push_back(*prefix);
    }
    sort_unique(out.routed_prefixes);
    return out;
}

Result<L4Port> l4_port(uint64_t number) {
    if (number < 1 || number > 65535) {
        return invalid("port " + std::to_string(number) + " is not in 1-65535");
    }
    return static_cast<L4Port>(number);
}

Result<std::optional<IpAddr>> optional_address(const std::string& text, const char* field) {
    if (text.empty()) {
        return std::nullopt;
    }
    const auto address = IpAddr::parse(text);
    if (!address) {
        return in_context(field, address.error());
    }
    return *address;
}

std::string socket_text(const IpAddr& address, L4Port port) {
    const std::string text = address.to_string();
    return (address.is_v4() ? text : "[" + text + "]") + ":" + std::to_string(port);
}

std::string text_of(const v1::ServiceKey& key) {
    const auto protocol = from_proto(key.protocol());
    return key.namespace_() + "/" + key.name() + (key.port_name().empty() ? "" : ":" + key.port_name()) + "/" +
           (protocol ? to_string(*protocol) : "?");
}

}  // namespace penstock::rpc
