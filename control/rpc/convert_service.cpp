// Conversion of a service port from and to the wire. It is by far the largest message; its rules protect the
// gateway from invalid configuration.
#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "control/rpc/convert.hpp"
#include "control/rpc/convert_rules.hpp"
#include "dataplane/base/limits.hpp"

namespace penstock::rpc {
namespace {

// The Kubernetes API's rule for endpoint addresses. Link-local addresses are refused for all classes, since
// they are valid on one link only.
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

// Names the address family expected by the set, for the error text.
std::string family_text(const model::BackendSet& set) {
    return set.translates_family ? std::string("the set's endpoints, ") + to_string(set.endpoint_family()) +
                                       " behind " + to_string(set.family)
                                 : std::string("the set's family, ") + to_string(set.family);
}

Result<model::Endpoint> endpoint_from(const v1::Endpoint& message, const model::BackendSet& set) {
    auto address = unicast_address(message.address());
    if (!address) {
        return std::unexpected(std::move(address.error()));
    }
    if (address->family() != set.endpoint_family()) {
        return invalid("address " + address->to_string() + " is not of " + family_text(set));
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
    return model::Endpoint{*address, *port, static_cast<uint16_t>(weight), message.node_name(),
                           message.zone()};
}

// A value outside the enumeration is named by its number in the error.
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

Result<model::ExcludedEndpoint> excluded_from(const v1::ExcludedEndpoint& message,
                                              const model::BackendSet& set) {
    const std::string& bytes = message.address();
    model::ExcludedEndpoint out;
    if (bytes.size() != (set.endpoint_family() == IpFamily::V4 ? 4 : 16)) {
        return invalid("an address of " + std::to_string(bytes.size()) + " bytes is not of " +
                       family_text(set));
    }
    if (set.endpoint_family() == IpFamily::V4) {
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
        return invalid(std::string(field) + " " + std::to_string(value) + " is not in " +
                       std::to_string(least) + "-" + std::to_string(most));
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
    for (const auto& [field, value, least, most, target] :
         {std::tuple("interval_s", message.interval_s(), 1U, 3600U, &probe.interval_s),
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
        return invalid("timeout_s " + std::to_string(probe.timeout_s) + " is not less than interval_s " +
                       std::to_string(probe.interval_s));
    }
    if (message.path().size() > kProbePathBytesMax) {
        return invalid("path is longer than " + std::to_string(kProbePathBytesMax) + " bytes");
    }
    // The path becomes part of a request line. It must not end the line or add a word to it.
    if (!message.path().empty() &&
        (message.path().front() != '/' ||
         !std::ranges::all_of(message.path(), [](char c) { return c > ' ' && c < 0x7f; }))) {
        return invalid("path must begin with / and contain no blanks or control characters");
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

Result<model::BackendSet> backend_set_from(const v1::BackendSet& message) {
    model::BackendSet set;
    set.family = message.ipv6() ? IpFamily::V6 : IpFamily::V4;
    set.translates_family = message.translates_family();
    const auto source = from_proto(message.source());
    if (!source) {
        return std::unexpected(source.error());
    }
    set.source = *source;
    if (set.translates_family && set.source == lb::SourceMode::Keep) {
        return invalid(std::string("source KEEP is not possible with endpoints ") +
                       to_string(set.endpoint_family()) + " behind " + to_string(set.family) +
                       ": the client's address is of another family than the endpoints");
    }
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
        auto endpoint = endpoint_from(message.endpoints(i), set);
        if (!endpoint) {
            // Concatenated here instead of by in_context, so that the path reads "sets[0].endpoints[3]: ...".
            return invalid(indexed("endpoints", i) + ": " + endpoint.error().what);
        }
        set.endpoints.push_back(std::move(*endpoint));
    }
    const auto place = [](const model::Endpoint& e) { return std::tie(e.address, e.port); };
    std::ranges::sort(set.endpoints, {}, place);
    const auto twice = std::ranges::adjacent_find(set.endpoints, {}, place);
    if (twice != set.endpoints.end()) {
        return invalid("endpoints: " + socket_text(twice->address, twice->port) + " is listed twice");
    }
    if (static_cast<uint32_t>(message.excluded_size()) > limits::kBackendsPerServiceMax) {
        return invalid("excluded: more than " + std::to_string(limits::kBackendsPerServiceMax));
    }
    set.excluded.reserve(static_cast<size_t>(message.excluded_size()));
    for (int i = 0; i < message.excluded_size(); ++i) {
        const auto excluded = excluded_from(message.excluded(i), set);
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
            return invalid("excluded: " + socket_text(excluded.address, excluded.port) + " is listed twice");
        }
    }
    return set;
}

Result<model::Frontend> frontend_from(const v1::Frontend& message,
                                      const std::vector<model::BackendSet>& sets) {
    model::Frontend frontend;
    const auto cls = from_proto(message.class_());
    if (!cls) {
        return std::unexpected(cls.error());
    }
    frontend.cls = *cls;
    if (frontend.cls == lb::FrontendClass::NodePort) {
        if (!message.address().empty()) {
            return invalid("a NODE_PORT frontend must have no address, but " + message.address() +
                           " is given");
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
         {std::pair("set", message.set()),
          std::pair("inside_set", message.has_inside_set() ? message.inside_set() : message.set())}) {
        if (number >= sets.size()) {
            return invalid(std::string(field) + " " + std::to_string(number) +
                           " does not exist; the last one is " + std::to_string(sets.size() - 1));
        }
        if (sets[number].family != frontend.family) {
            return invalid(std::string("an ") + to_string(frontend.family) + " frontend uses " + field + " " +
                           std::to_string(number) + ", which is of family " + to_string(sets[number].family));
        }
    }
    frontend.set = static_cast<uint8_t>(message.set());
    if (message.has_inside_set()) {
        frontend.inside_set = static_cast<uint8_t>(message.inside_set());
    }
    frontend.filtered = message.filtered();
    return frontend;
}

// Reads all fields except the key. Errors do not yet contain the service's name.
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
        return invalid("sets: there are " + std::to_string(message.sets_size()) + ", not 1-" +
                       std::to_string(kBackendSetsMax));
    }
    for (int i = 0; i < message.sets_size(); ++i) {
        auto set = backend_set_from(message.sets(i));
        if (!set) {
            return invalid(indexed("sets", i) + (set.error().what.starts_with("endpoints[") ? "." : ": ") +
                           set.error().what);
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
                           (node_port ? "NodePort " + std::to_string(frontend->port)
                                      : socket_text(frontend->address, frontend->port)) +
                           " is listed twice");
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
    // The maxima are the largest values that an object may request (AFF-003, ANN-03, ANN-02).
    for (const auto& [field, value, most] :
         {std::tuple("affinity_timeout_s", message.affinity_timeout_s(), 86'400U),
          std::tuple("idle_timeout_s", message.idle_timeout_s(), 604'800U),
          std::tuple("drain_timeout_s", message.drain_timeout_s(), 3'600U)}) {
        if (auto good = within(field, value, 0, most); !good) {
            return std::unexpected(std::move(good.error()));
        }
    }
    service.affinity_timeout_s = message.affinity_timeout_s();
    if (message.affinity_all_ports()) {
        if (service.affinity_timeout_s == 0) {
            return invalid("affinity_all_ports without affinity_timeout_s");
        }
        service.affinity_scope = lb::AffinityScope::Service;
    }
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
        out.set_translates_family(set.translates_family);
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
    message.set_affinity_all_ports(service.affinity_scope == lb::AffinityScope::Service);
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

Result<model::Service> from_proto(const v1::Service& service) {
    auto key = from_proto(service.key());
    auto out = key ? service_from(service, std::move(*key))
                   : Result<model::Service>(std::unexpected(std::move(key.error())));
    if (!out) {
        return in_context("service " + text_of(service.key()), std::move(out.error()));
    }
    return out;
}

}  // namespace penstock::rpc
