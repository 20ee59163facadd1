// SPDX-License-Identifier: Apache-2.0
#include "control/kube/status/service_status.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "control/kube/events/json_text.hpp"
#include "dataplane/base/ip.hpp"

namespace penstock::kube {
namespace {

bool is_own(const Condition& condition) {
    return condition.type == kAllocatedCondition || condition.type == kProgrammedCondition;
}

const Condition* find_condition(const std::vector<Condition>& conditions, std::string_view type) {
    const auto found = std::ranges::find(conditions, type, &Condition::type);
    return found == conditions.end() ? nullptr : &*found;
}

bool is_allocated(const std::vector<Condition>& conditions) {
    const Condition* allocated = find_condition(conditions, kAllocatedCondition);
    return allocated != nullptr && allocated->status == "True";
}

// The canonical text of an address, so that texts of one address are equal; other texts are unchanged.
std::string normal_address(const std::string& text) {
    const auto address = IpAddr::parse(text);
    return address ? address->to_string() : text;
}

// One spelling for each meaning: "" is ipMode VIP, and the order of ports has no meaning.
std::vector<LoadBalancerIngress> normal_ingress(std::vector<LoadBalancerIngress> ingress) {
    const auto port_key = [](const LoadBalancerIngress::PortStatus& port) {
        return std::tie(port.port, port.protocol, port.error);
    };
    for (LoadBalancerIngress& entry : ingress) {
        entry.ip = normal_address(entry.ip);
        if (entry.ip_mode == "VIP" || entry.ip.empty()) {
            entry.ip_mode.clear();  // without an address the mode has no meaning
        }
        std::ranges::sort(entry.ports, {}, port_key);
    }
    std::ranges::sort(ingress, [&](const LoadBalancerIngress& a, const LoadBalancerIngress& b) {
        const auto key = [](const LoadBalancerIngress& entry) {
            return std::tie(entry.ip, entry.hostname, entry.ip_mode);
        };
        return key(a) != key(b)
                   ? key(a) < key(b)
                   : std::ranges::lexicographical_compare(a.ports, b.ports, {}, port_key, port_key);
    });
    return ingress;
}

std::vector<Condition> own_conditions(const std::vector<Condition>& conditions) {
    std::vector<Condition> own;
    std::ranges::copy_if(conditions, std::back_inserter(own), is_own);
    std::ranges::sort(own, {}, &Condition::type);
    return own;
}

// The current ingress may be replaced: it is empty, Penstock's, or each address of it is desired anyway.
bool may_change_ingress(const Service& current, const std::vector<LoadBalancerIngress>& desired) {
    const auto is_desired = [&](const LoadBalancerIngress& entry) {
        return std::ranges::any_of(desired, [&](const LoadBalancerIngress& other) {
            return normal_address(other.ip) == normal_address(entry.ip) && other.hostname == entry.hostname;
        });
    };
    return has_marker(current) || std::ranges::all_of(current.ingress, is_desired);
}

// Appends a comma before each item of a list but the first.
void separate(std::string& json) {
    if (json.back() != '[') {
        json += ',';
    }
}

void add_ingress(std::string& json, const std::vector<LoadBalancerIngress>& ingress) {
    add_key(json, "loadBalancer");
    json += R"({"ingress":[)";
    for (const LoadBalancerIngress& entry : ingress) {
        separate(json);
        json += '{';
        add_text_if_any(json, "ip", entry.ip);
        add_text_if_any(json, "hostname", entry.hostname);
        add_text_if_any(json, "ipMode", entry.ip_mode);
        if (!entry.ports.empty()) {
            add_key(json, "ports");
            json += '[';
            for (const LoadBalancerIngress::PortStatus& port : entry.ports) {
                separate(json);
                json += '{';
                add_number(json, "port", port.port);
                add_text(json, "protocol", port.protocol);
                add_text_if_any(json, "error", port.error);
                json += '}';
            }
            json += ']';
        }
        json += '}';
    }
    json += "]}";
}

// lastTransitionTime is sent only if the status of the condition changes: the merge keeps the present time.
void add_conditions(std::string& json, const Service& current, const ServiceStatus& desired, WallTime now) {
    add_key(json, "conditions");
    json += '[';
    for (const Condition& condition : desired.conditions) {
        separate(json);
        json += '{';
        add_text(json, "type", condition.type);
        add_text(json, "status", condition.status);
        add_text(json, "reason", condition.reason);
        add_text(json, "message", condition.message);
        if (const Condition* before = find_condition(current.conditions, condition.type);
            before == nullptr || before->status != condition.status) {
            add_text(json, "lastTransitionTime", time_text(now));
        }
        if (desired.observed_generation) {
            add_number(json, "observedGeneration", *desired.observed_generation);
        }
        json += '}';
    }
    for (const Condition& condition : current.conditions) {
        if (is_own(condition) && find_condition(desired.conditions, condition.type) == nullptr) {
            separate(json);
            json += '{';
            add_text(json, "type", condition.type);
            add_text(json, "$patch", "delete");
            json += '}';
        }
    }
    json += ']';
}

}  // namespace

ServiceStatus status_of(const Service& service) {
    ServiceStatus status{.ingress = service.ingress, .conditions = {}, .observed_generation = {}};
    std::ranges::copy_if(service.conditions, std::back_inserter(status.conditions), is_own);
    return status;
}

bool is_same_ingress(const std::vector<LoadBalancerIngress>& a, const std::vector<LoadBalancerIngress>& b) {
    return a == b || (a.size() == b.size() && normal_ingress(a) == normal_ingress(b));
}

bool is_same_status(const ServiceStatus& a, const ServiceStatus& b) {
    return is_same_ingress(a.ingress, b.ingress) &&
           own_conditions(a.conditions) == own_conditions(b.conditions);
}

StatusPlan plan_status(const Service& current, std::string_view resource_version,
                       const ServiceStatus& desired, WallTime now) {
    const bool is_foreign = !may_change_ingress(current, desired.ingress);
    // The marker would declare the ingress of another writer to be Penstock's.
    if (is_foreign && (!desired.ingress.empty() || is_allocated(desired.conditions))) {
        return {.action = StatusPlan::Action::Foreign, .body = {}};
    }
    const bool is_same_list = is_foreign || is_same_ingress(current.ingress, desired.ingress);
    if (is_same_list && own_conditions(current.conditions) == own_conditions(desired.conditions)) {
        return {};
    }
    std::string json = "{";
    add_key(json, "metadata");
    json += '{';
    add_text(json, "resourceVersion", resource_version);
    json += '}';
    add_key(json, "status");
    json += '{';
    if (!is_foreign && (!current.ingress.empty() || !desired.ingress.empty())) {
        add_ingress(json, desired.ingress);
    }
    add_conditions(json, current, desired, now);
    json += "}}";
    return {.action = StatusPlan::Action::Write, .body = std::move(json)};
}

std::string service_status_target(const ObjectName& name) {
    return "/api/v1/namespaces/" + path_segment(name.namespace_name) + "/services/" +
           path_segment(name.name) + "/status";
}

}  // namespace penstock::kube
