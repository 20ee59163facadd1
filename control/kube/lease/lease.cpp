// SPDX-License-Identifier: Apache-2.0
#include "control/kube/lease/lease.hpp"

#include <algorithm>
#include <limits>

#include "control/kube/events/json_text.hpp"
#include "control/kube/json/json_fields.hpp"

namespace penstock::kube {
namespace {

constexpr std::string_view kApiVersion = "coordination.k8s.io/v1";
constexpr int64_t kTransitionsMax = std::numeric_limits<int32_t>::max();

void begin_object(std::string& json, std::string_view name) {
    add_key(json, name);
    json += '{';
}

// `{"metadata":{"resourceVersion":...},"spec":{`: the rest of spec and two braces follow.
std::string patch_head(const Lease& lease) {
    std::string json = "{";
    begin_object(json, "metadata");
    add_text(json, "resourceVersion", lease.resource_version);
    json += '}';
    begin_object(json, "spec");
    return json;
}

void add_holder(std::string& json, std::string_view identity, WallTime now) {
    add_text(json, "holderIdentity", identity);
    add_number(json, "leaseDurationSeconds", kLeaseDuration.count());
    add_text(json, "renewTime", micro_time_text(now));
}

}  // namespace

Result<Lease> parse_lease(JsonTree& tree, std::string_view json) {
    PENSTOCK_TRY_STATUS_IN("lease", tree.parse(json));
    FaultList faults;
    const JsonFields object(tree, 0, faults);
    const JsonFields spec = object.mapping("spec");
    Lease lease;
    lease.resource_version = object.mapping("metadata").text("resourceVersion");
    lease.record.holder = spec.text("holderIdentity");
    // A longer value than an hour is no time that a leader takes to fail.
    lease.record.duration = std::chrono::seconds(
        std::clamp<int64_t>(spec.integer("leaseDurationSeconds").value_or(kLeaseDuration.count()), 1, 3'600));
    lease.record.acquire_time = spec.text("acquireTime");
    lease.record.renew_time = spec.text("renewTime");
    lease.record.transitions = static_cast<int32_t>(
        std::clamp<int64_t>(spec.integer("leaseTransitions").value_or(0), 0, kTransitionsMax));
    if (!faults.empty()) {
        return fail(Errc::Corrupt, "lease: " + faults.take().front());
    }
    if (lease.resource_version.empty()) {
        return fail(Errc::Corrupt, "lease: metadata.resourceVersion is missing");
    }
    return lease;
}

std::string lease_target(std::string_view namespace_name, std::string_view name) {
    std::string target =
        "/apis/coordination.k8s.io/v1/namespaces/" + path_segment(namespace_name) + "/leases";
    if (!name.empty()) {
        target += "/" + path_segment(name);
    }
    return target;
}

std::string lease_create_body(const ObjectName& name, std::string_view identity, WallTime now) {
    std::string json = "{";
    add_text(json, "apiVersion", kApiVersion);
    add_text(json, "kind", "Lease");
    begin_object(json, "metadata");
    add_text(json, "name", name.name);
    add_text(json, "namespace", name.namespace_name);
    json += '}';
    begin_object(json, "spec");
    add_holder(json, identity, now);
    add_text(json, "acquireTime", micro_time_text(now));
    add_number(json, "leaseTransitions", 0);
    return json + "}}";
}

std::string lease_claim_body(const Lease& lease, std::string_view identity, WallTime now) {
    std::string json = patch_head(lease);
    add_holder(json, identity, now);
    add_text(json, "acquireTime", micro_time_text(now));
    add_number(json, "leaseTransitions",
               std::min<int64_t>(int64_t{lease.record.transitions} + 1, kTransitionsMax));
    return json + "}}";
}

std::string lease_renew_body(const Lease& lease, std::string_view identity, WallTime now) {
    std::string json = patch_head(lease);
    add_holder(json, identity, now);
    return json + "}}";
}

std::string lease_release_body(const Lease& lease, WallTime now) {
    std::string json = patch_head(lease);
    add_text(json, "holderIdentity", "");
    add_number(json, "leaseDurationSeconds", 1);
    add_text(json, "renewTime", micro_time_text(now));
    return json + "}}";
}

}  // namespace penstock::kube
