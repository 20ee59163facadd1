// SPDX-License-Identifier: Apache-2.0
#include "tests/support/model_cluster.hpp"

#include <gtest/gtest.h>
#include <simdjson.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "control/kube/events/json_text.hpp"

namespace penstock::test {
namespace {

using simdjson::dom::element;

std::string text_in(const element& object, const char* key) {
    std::string_view text;
    return object[key].get(text) == simdjson::SUCCESS ? std::string(text) : "";
}

void set_text(const element& object, const char* key, std::string& value) {
    std::string_view text;
    if (object[key].get(text) == simdjson::SUCCESS) {
        value = text;
    }
}

void set_number(const element& object, const char* key, int64_t& value) {
    int64_t number = 0;
    if (object[key].get(number) == simdjson::SUCCESS) {
        value = number;
    }
}

kube::LoadBalancerIngress ingress_entry(const element& entry) {
    kube::LoadBalancerIngress read{.ip = text_in(entry, "ip"),
                                   .hostname = text_in(entry, "hostname"),
                                   .ip_mode = text_in(entry, "ipMode"),
                                   .ports = {}};
    simdjson::dom::array ports;
    if (entry["ports"].get(ports) == simdjson::SUCCESS) {
        for (const element port : ports) {
            read.ports.push_back({.port = int64_t{port["port"]},
                                  .protocol = text_in(port, "protocol"),
                                  .error = text_in(port, "error")});
        }
    }
    return read;
}

void merge_condition(kube::Service& service, const element& change) {
    const std::string type = text_in(change, "type");
    const auto found = std::ranges::find(service.conditions, type, &kube::Condition::type);
    if (text_in(change, "$patch") == "delete") {
        std::erase_if(service.conditions, [&](const kube::Condition& each) { return each.type == type; });
        return;
    }
    kube::Condition merged = found == service.conditions.end()
                                 ? kube::Condition{.type = type, .status = {}, .reason = {}, .message = {}}
                                 : *found;
    set_text(change, "status", merged.status);
    set_text(change, "reason", merged.reason);
    set_text(change, "message", merged.message);
    EXPECT_FALSE(merged.status.empty() || merged.reason.empty()) << type;
    if (found == service.conditions.end()) {
        service.conditions.push_back(std::move(merged));
    } else {
        *found = std::move(merged);
    }
}

// A strategic merge patch of status: ingress is replaced, conditions are merged by their type.
kube::Service patched(kube::Service service, const element& status) {
    simdjson::dom::array list;
    if (status["loadBalancer"]["ingress"].get(list) == simdjson::SUCCESS) {
        service.ingress.clear();
        for (const element entry : list) {
            service.ingress.push_back(ingress_entry(entry));
        }
    }
    if (status["conditions"].get(list) == simdjson::SUCCESS) {
        for (const element change : list) {
            merge_condition(service, change);
        }
    }
    return service;
}

// The parts of a Service that a writer of status reads from a response.
std::string text_of(const kube::ServiceVersion& stored) {
    const kube::Service& service = *stored.object;
    std::string json = R"({"kind":"Service","metadata":{)";
    kube::add_text(json, "name", service.meta.name);
    kube::add_text(json, "namespace", service.meta.namespace_name);
    kube::add_text(json, "resourceVersion", stored.resource_version);
    json += R"(},"spec":{)";
    kube::add_text(json, "type", service.type);
    json += R"(},"status":{"loadBalancer":{"ingress":[)";
    for (const kube::LoadBalancerIngress& entry : service.ingress) {
        json += json.back() == '[' ? "{" : ",{";
        kube::add_text_if_any(json, "ip", entry.ip);
        kube::add_text_if_any(json, "hostname", entry.hostname);
        kube::add_text_if_any(json, "ipMode", entry.ip_mode);
        kube::add_key(json, "ports");
        json += '[';
        for (const auto& port : entry.ports) {
            json += json.back() == '[' ? "{" : ",{";
            kube::add_number(json, "port", port.port);
            kube::add_text(json, "protocol", port.protocol);
            kube::add_text_if_any(json, "error", port.error);
            json += '}';
        }
        json += "]}";
    }
    json += R"(]},"conditions":[)";
    for (const kube::Condition& condition : service.conditions) {
        json += json.back() == '[' ? "{" : ",{";
        kube::add_text(json, "type", condition.type);
        kube::add_text(json, "status", condition.status);
        kube::add_text(json, "reason", condition.reason);
        kube::add_text(json, "message", condition.message);
        json += '}';
    }
    return json + "]}}";
}

// Segment `index` of "/api/v1/namespaces/...", counted from 0.
std::string segment(std::string_view target, int index) {
    for (; index >= 0; --index) {
        target.remove_prefix(target.find('/') + 1);
    }
    return std::string(target.substr(0, target.find('/')));
}

}  // namespace

void ModelCluster::record(const Name& name, kube::ServicePtr value) {
    ++version_;
    if (value == nullptr) {
        services_.erase(name);
    } else {
        services_.insert_or_assign(name, kube::ServiceVersion{value, std::to_string(version_)});
    }
    history_.push_back({.version = version_,
                        .service = name,
                        .service_value = std::move(value),
                        .pool = {},
                        .pool_value = {}});
}

void ModelCluster::put(const kube::Service& service) {
    record({service.meta.namespace_name, service.meta.name}, std::make_shared<const kube::Service>(service));
}

void ModelCluster::remove(const Name& name) {
    record(name, nullptr);
}

void ModelCluster::put_pool(const ipam::Pool& pool) {
    const auto value = std::make_shared<const kube::AddressPool>(
        kube::AddressPool{.meta = {.namespace_name = {}, .name = pool.name, .uid = "uid-" + pool.name},
                          .generation = 1,
                          .pool = pool});
    pools_[pool.name] = value;
    pool_versions_[pool.name] = ++version_;
    history_.push_back(
        {.version = version_, .service = {}, .service_value = {}, .pool = pool.name, .pool_value = value});
}

void ModelCluster::remove_pool(const std::string& name) {
    pools_.erase(name);
    history_.push_back(
        {.version = ++version_, .service = {}, .service_value = {}, .pool = name, .pool_value = {}});
}

const kube::Service* ModelCluster::find(const Name& name) const {
    const auto found = services_.find(name);
    return found == services_.end() ? nullptr : found->second.object.get();
}

ModelCluster::Reply ModelCluster::execute(const kube::Request& request) {
    if (request.target.contains("/leases")) {
        return execute_lease(request);
    }
    if (request.target.contains("/addresspools/")) {
        return patch_pool(segment(request.target, 4), request.body);
    }
    return patch_service({segment(request.target, 3), segment(request.target, 5)}, request.body);
}

ModelCluster::Reply ModelCluster::patch_service(const Name& name, const std::string& body) {
    const auto found = services_.find(name);
    if (found == services_.end()) {
        return {404, "{}"};
    }
    simdjson::dom::parser parser;
    const simdjson::padded_string json(body);
    const element root = parser.parse(json);
    const std::string precondition = text_in(root["metadata"], "resourceVersion");
    EXPECT_NE(precondition, "") << body;
    if (precondition != found->second.resource_version) {
        return {409, "{}"};
    }
    const kube::ServicePtr before = found->second.object;
    auto after = std::make_shared<const kube::Service>(patched(*before, root["status"]));
    ++status_writes_;
    if (on_status) {
        on_status(*before, *after);
    }
    record(name, std::move(after));
    return {200, text_of(services_.at(name))};
}

ModelCluster::Reply ModelCluster::patch_pool(const std::string& name, const std::string& body) {
    if (!pools_.contains(name)) {
        return {404, "{}"};
    }
    simdjson::dom::parser parser;
    const simdjson::padded_string json(body);
    const element root = parser.parse(json);
    if (text_in(root["metadata"], "resourceVersion") != std::to_string(pool_versions_.at(name))) {
        return {409, "{}"};
    }
    ++pool_writes_;
    pool_versions_[name] = ++version_;
    history_.push_back({.version = version_,
                        .service = {},
                        .service_value = {},
                        .pool = name,
                        .pool_value = pools_.at(name)});
    return {200, "{}"};
}

ModelCluster::Reply ModelCluster::execute_lease(const kube::Request& request) {
    if (request.method == "GET") {
        return lease_version_ == 0 ? Reply{404, "{}"} : Reply{200, lease_text()};
    }
    simdjson::dom::parser parser;
    const simdjson::padded_string json(request.body);
    const element root = parser.parse(json);
    const std::string precondition = text_in(root["metadata"], "resourceVersion");
    if (request.method == "POST" ? lease_version_ != 0 : precondition != std::to_string(lease_version_)) {
        return {409, "{}"};
    }
    const element spec = root["spec"];
    set_text(spec, "holderIdentity", holder_);
    set_number(spec, "leaseDurationSeconds", lease_duration_s_);
    set_text(spec, "renewTime", renew_time_);
    set_text(spec, "acquireTime", acquire_time_);
    set_number(spec, "leaseTransitions", transitions_);
    lease_version_ = ++version_;
    return {200, lease_text()};
}

std::string ModelCluster::lease_text() const {
    std::string json = R"({"kind":"Lease","metadata":{)";
    kube::add_text(json, "name", "penstock-sync");
    kube::add_text(json, "resourceVersion", std::to_string(lease_version_));
    json += R"(},"spec":{)";
    kube::add_text(json, "holderIdentity", holder_);
    kube::add_number(json, "leaseDurationSeconds", lease_duration_s_);
    kube::add_text(json, "renewTime", renew_time_);
    kube::add_text(json, "acquireTime", acquire_time_);
    kube::add_number(json, "leaseTransitions", transitions_);
    return json + "}}";
}

}  // namespace penstock::test
