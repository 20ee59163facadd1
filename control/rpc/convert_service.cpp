// SPDX-License-Identifier: Apache-2.0
// Conversion of a service port from and to the wire. It is by far the largest message; its rules protect the
// gateway from invalid configuration.
#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "control/base/log_names.hpp"
#include "control/base/log_tags.hpp"
#include "control/rpc/convert.hpp"
#include "control/rpc/convert_rules.hpp"
#include "control/rpc/enum_table.hpp"

namespace penstock::rpc {
namespace {

// clang-format off
constexpr auto kProbeKinds = enum_table<model::Probe::Kind, v1::Probe::Kind>("kind", {
    {model::Probe::Kind::Tcp, v1::Probe::KIND_TCP},
    {model::Probe::Kind::Http, v1::Probe::KIND_HTTP},
}, Unset::IsUnknown);
// clang-format on
static_assert(kProbeKinds.covers(v1::Probe::Kind_MAX));

Result<uint32_t> within(const char* field, uint32_t value, uint32_t least, uint32_t most) {
    if (value < least || value > most) {
        return invalid(std::string(field) + " " + std::to_string(value) + " is not in " +
                       std::to_string(least) + "-" + std::to_string(most));
    }
    return value;
}

Result<model::Probe> probe_from(const v1::Probe& message) {
    model::Probe probe;
    PENSTOCK_TRY(probe.kind, kProbeKinds.from_wire(message.kind()));
    if (message.port() > 65535) {
        return invalid("port " + std::to_string(message.port()) + " is not in 0-65535");
    }
    probe.port = static_cast<L4Port>(message.port());
    for (const auto& [field, value, least, most, target] :
         {std::tuple("interval_s", message.interval_s(), 1U, 3600U, &probe.interval_s),
          std::tuple("timeout_s", message.timeout_s(), 1U, 3600U, &probe.timeout_s),
          std::tuple("healthy", message.healthy(), 1U, 100U, &probe.healthy),
          std::tuple("unhealthy", message.unhealthy(), 1U, 100U, &probe.unhealthy)}) {
        PENSTOCK_TRY(*target, within(field, value, least, most));
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
    message.set_kind(kProbeKinds.to_wire(probe.kind));
    message.set_port(probe.port);
    message.set_path(probe.path);
    message.set_interval_s(probe.interval_s);
    message.set_timeout_s(probe.timeout_s);
    message.set_healthy(probe.healthy);
    message.set_unhealthy(probe.unhealthy);
    message.set_fails_closed(probe.fails_closed);
    return message;
}

Result<model::AccessLog> access_log_from(const v1::AccessLog& message) {
    model::AccessLog log;
    if (message.has_enabled()) {
        log.enabled = message.enabled();
    }
    if (message.interval_min() != 0) {
        if (message.interval_min() != 5 && message.interval_min() != 60) {
            return invalid("interval_min " + std::to_string(message.interval_min()) + " is not 5 or 60");
        }
        log.interval_min = message.interval_min();
    }
    if (!message.sink().empty()) {
        if (!is_log_sink(message.sink())) {
            return invalid("sink must have 3-63 characters of a-z, 0-9, '.' and '-'");
        }
        log.sink = message.sink();
    }
    if (!message.prefix().empty()) {
        if (!is_log_prefix(message.prefix())) {
            return invalid("prefix must be a relative path without '..', of at most " +
                           std::to_string(kLogPrefixMax) + " letters, digits, '.', '-', '_' and '/'");
        }
        log.prefix = message.prefix();
    }
    if (!message.tags().empty()) {
        if (!is_log_tags(message.tags())) {
            return invalid("tags must be at most " + std::to_string(kLogTagsMax) +
                           " pairs, sorted, separated by ',': " + std::string(kLogTagRule));
        }
        log.tags = message.tags();
    }
    return log;
}

v1::AccessLog to_proto(const model::AccessLog& log) {
    v1::AccessLog message;
    if (log.enabled) {
        message.set_enabled(*log.enabled);
    }
    message.set_interval_min(log.interval_min);
    message.set_sink(log.sink.value());
    message.set_prefix(log.prefix.value());
    message.set_tags(log.tags.value());
    return message;
}

Result<model::Frontend> frontend_from(const v1::Frontend& message,
                                      const std::vector<model::BackendSet>& sets) {
    model::Frontend frontend;
    PENSTOCK_TRY(const auto cls, from_proto(message.class_()));
    frontend.cls = cls;
    if (frontend.cls == lb::FrontendClass::NodePort) {
        if (!message.address().empty()) {
            return invalid("a NODE_PORT frontend must have no address, but " + message.address() +
                           " is given");
        }
        frontend.family = message.ipv6() ? IpFamily::V6 : IpFamily::V4;
    } else {
        PENSTOCK_TRY(const auto address, unicast_address(message.address()));
        frontend.address = address;
        frontend.family = address.family();
    }
    PENSTOCK_TRY(frontend.port, l4_port(message.port()));
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
    PENSTOCK_TRY_IN("service_port", service.service_port, l4_port(message.service_port()));
    PENSTOCK_TRY(service.scheduler, from_proto(message.scheduler()));
    if (message.sets_size() < 1 || message.sets_size() > kBackendSetsMax) {
        return invalid("sets: there are " + std::to_string(message.sets_size()) + ", not 1-" +
                       std::to_string(kBackendSetsMax));
    }
    for (int i = 0; i < message.sets_size(); ++i) {
        auto set = from_proto(message.sets(i));
        if (!set) {
            return invalid(indexed("sets", i) + (set.error().what.starts_with("endpoints[") ? "." : ": ") +
                           set.error().what);
        }
        service.sets.push_back(std::move(*set));
    }
    std::set<std::tuple<bool, IpFamily, IpAddr, L4Port>> tuples;
    for (int i = 0; i < message.frontends_size(); ++i) {
        PENSTOCK_TRY_IN(indexed("frontends", i), auto frontend,
                        frontend_from(message.frontends(i), service.sets));
        const bool node_port = frontend.cls == lb::FrontendClass::NodePort;
        if (!tuples.emplace(node_port, frontend.family, frontend.address, frontend.port).second) {
            return invalid(
                indexed("frontends", i) + ": " +
                (node_port ? "NodePort " + std::to_string(frontend.port) : frontend.socket().to_string()) +
                " is listed twice");
        }
        service.frontends.push_back(std::move(frontend));
    }
    for (int i = 0; i < message.source_ranges_size(); ++i) {
        PENSTOCK_TRY_IN(indexed("source_ranges", i), auto range, Prefix::parse(message.source_ranges(i)));
        service.source_ranges.push_back(range);
    }
    sort_unique(service.source_ranges);
    service.source_ranges_deny = message.source_ranges_deny();
    for (int i = 0; i < message.notices_size(); ++i) {
        PENSTOCK_TRY_IN(indexed("notices", i), auto notice, from_proto(message.notices(i)));
        service.notices.push_back(std::move(notice));
    }
    service.uid = message.uid();
    // The maxima are the largest values that an object may request (AFF-003, ANN-03, ANN-02).
    for (const auto& [field, value, most] :
         {std::tuple("affinity_timeout_s", message.affinity_timeout_s(), 86'400U),
          std::tuple("idle_timeout_s", message.idle_timeout_s(), 604'800U),
          std::tuple("drain_timeout_s", message.drain_timeout_s(), 3'600U)}) {
        PENSTOCK_TRY_STATUS(within(field, value, 0, most));
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
        PENSTOCK_TRY_IN("health_check", const auto port, l4_port(message.health_check().port()));
        service.health_check = {port, message.health_check().local_endpoints()};
    }
    if (message.has_probe()) {
        PENSTOCK_TRY_IN("probe", service.probe, probe_from(message.probe()));
    }
    if (message.has_access_log()) {
        PENSTOCK_TRY_IN("access_log", service.access_log, access_log_from(message.access_log()));
    }
    return service;
}

}  // namespace

v1::Service to_proto(const model::Service& service) {
    v1::Service message;
    *message.mutable_key() = to_proto(service.key);
    message.set_service_port(service.service_port);
    message.set_scheduler(to_proto(service.scheduler));
    for (const auto& set : service.sets) {
        *message.add_sets() = to_proto(set);
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
    if (service.access_log != model::AccessLog()) {
        *message.mutable_access_log() = to_proto(service.access_log);
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
