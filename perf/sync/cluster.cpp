// SPDX-License-Identifier: Apache-2.0
#include "perf/sync/cluster.hpp"

#include <cstdio>

namespace penstock::perf {
namespace {

constexpr uint32_t kEndpointsPerNode = 110;  // the kubelet's default of Pods

// IPv4 text of the `index`-th address from `base` on.
std::string address(uint32_t base, uint32_t index) {
    const uint32_t value = base + index;
    return std::to_string(value >> 24) + "." + std::to_string(value >> 16 & 255) + "." +
           std::to_string(value >> 8 & 255) + "." + std::to_string(value & 255);
}
constexpr uint32_t kClusterIps = 10u << 24 | 96u << 16;        // 10.96.0.0/12
constexpr uint32_t kLoadBalancerIps = 10u << 24 | 112u << 16;  // 10.112.0.0/14
constexpr uint32_t kPodIps = 10u << 24 | 128u << 16;           // 10.128.0.0/9
constexpr uint32_t kNodeIps = 172u << 24 | 16u << 16;          // 172.16.0.0/12

std::string named(const char* prefix, uint32_t index) {
    char text[32];
    std::snprintf(text, sizeof text, "%s-%06u", prefix, index);
    return text;
}

std::string uid(uint32_t kind, uint32_t index) {
    char text[40];
    std::snprintf(text, sizeof text, "%08x-1a2b-4c3d-8e4f-%04x%08x", index * 2654435761u, kind, index);
    return text;
}

}  // namespace

Cluster::Cluster(uint32_t services, uint32_t endpoints)
    : services_(services), endpoints_(endpoints), slices_(services) {
    for (Slice& slice : slices_) {
        slice.version = version_;
    }
}

uint32_t Cluster::numbered(Collection collection) const noexcept {
    return collection == Collection::Nodes ? services_ * endpoints_ / kEndpointsPerNode + 1 : services_;
}

uint32_t Cluster::size(Collection collection) const noexcept {
    return numbered(collection) + static_cast<uint32_t>(more_[static_cast<size_t>(collection)].size());
}

const char* Cluster::list_kind(Collection collection) noexcept {
    switch (collection) {
        case Collection::Services:
            return "ServiceList";
        case Collection::Slices:
            return "EndpointSliceList";
        case Collection::Nodes:
            return "NodeList";
    }
    return "";
}

const char* Cluster::api_version(Collection collection) noexcept {
    return collection == Collection::Slices ? "discovery.k8s.io/v1" : "v1";
}

void Cluster::flip(uint32_t slice) {
    ++slices_[slice].flips;
    slices_[slice].version = ++version_;
}

std::string Cluster::object(Collection collection, uint32_t index) const {
    if (const uint32_t first = numbered(collection); index >= first) {
        return more_[static_cast<size_t>(collection)][index - first];
    }
    switch (collection) {
        case Collection::Services:
            return service(index);
        case Collection::Slices:
            return slice(index);
        case Collection::Nodes:
            return node(index);
    }
    return "";
}

std::string Cluster::meta(const char* namespace_name, const std::string& name, const std::string& labels,
                          uint64_t version) const {
    return R"("metadata":{"name":")" + name + R"(",)" +
           (namespace_name[0] == 0 ? "" : std::string(R"("namespace":")") + namespace_name + R"(",)") +
           R"("uid":")" +
           uid(namespace_name[0] == 0, static_cast<uint32_t>(std::stoul(name.substr(name.size() - 6)))) +
           R"(","resourceVersion":")" + std::to_string(version) +
           R"(","generation":1,"creationTimestamp":"2026-01-01T00:00:00Z","labels":{)" + labels +
           R"(},"managedFields":[{"manager":"kube-controller-manager","operation":"Update","apiVersion":"v1","time":"2026-01-01T00:00:00Z",)"
           R"("fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:labels":{".":{},"f:app":{}}},"f:spec":{"f:ports":{}}}}]})";
}

std::string Cluster::service(uint32_t index) const {
    const std::string name = named("svc", index);
    const std::string cluster_ip = address(kClusterIps, index + 1);
    return R"({"kind":"Service","apiVersion":"v1",)" +
           meta("bench", name, R"("app":")" + name + R"(")", 1'000'000) +
           R"(,"spec":{"ports":[{"name":"http","protocol":"TCP","port":80,"targetPort":8080,"nodePort":)" +
           std::to_string(30'000 + index % 20'000) + R"(}],"selector":{"app":")" + name +
           R"("},"clusterIP":")" + cluster_ip + R"(","clusterIPs":[")" + cluster_ip +
           R"("],"type":"LoadBalancer","sessionAffinity":"None","externalTrafficPolicy":"Cluster","ipFamilies":["IPv4"],)"
           R"("ipFamilyPolicy":"SingleStack","allocateLoadBalancerNodePorts":true,"internalTrafficPolicy":"Cluster",)"
           R"("loadBalancerClass":"penstock.io/gateway"},"status":{"loadBalancer":{"ingress":[{"ip":")" +
           address(kLoadBalancerIps, index) + R"(","ipMode":"VIP"}]}}})";
}

std::string Cluster::slice(uint32_t index) const {
    const Slice& slice = slices_[index];
    const std::string service = named("svc", index);
    std::string text =
        R"({"kind":"EndpointSlice","apiVersion":"discovery.k8s.io/v1",)" +
        meta(
            "bench", named("svc-slice", index),
            R"("endpointslice.kubernetes.io/managed-by":"endpointslice-controller.k8s.io","kubernetes.io/service-name":")" +
                service + R"(")",
            slice.version) +
        R"(,"addressType":"IPv4","ports":[{"name":"http","port":8080,"protocol":"TCP"}],"endpoints":[)";
    text.reserve(text.size() + endpoints_ * 360);
    for (uint32_t i = 0; i < endpoints_; ++i) {
        const uint32_t pod = index * endpoints_ + i;
        // After an endpoint is ready again, the next flip changes the following endpoint.
        const bool ready = slice.flips % 2 == 0 || slice.flips / 2 % endpoints_ != i;
        const char* conditions = ready ? R"({"ready":true,"serving":true,"terminating":false})"
                                       : R"({"ready":false,"serving":false,"terminating":false})";
        text += (i == 0 ? "" : ",") + std::string(R"({"addresses":[")") + address(kPodIps, pod) +
                R"("],"conditions":)" + conditions +
                R"(,"targetRef":{"kind":"Pod","namespace":"bench","name":")" + service + "-" +
                std::to_string(i) + R"(","uid":")" + uid(2, pod) + R"("},"nodeName":")" +
                named("node-pool-a", pod / kEndpointsPerNode) + R"(","zone":"zone-)" +
                static_cast<char>('a' + pod / kEndpointsPerNode % 3) + R"("})";
    }
    return text + "]}";
}

std::string Cluster::node(uint32_t index) const {
    const std::string name = named("node-pool-a", index);
    return R"({"kind":"Node","apiVersion":"v1",)" +
           meta("", name,
                R"("kubernetes.io/hostname":")" + name + R"(","topology.kubernetes.io/zone":"zone-)" +
                    static_cast<char>('a' + index % 3) + R"(","kubernetes.io/os":"linux")",
                1'000'000) +
           R"(,"spec":{"podCIDR":"100.64.0.0/24","podCIDRs":["100.64.0.0/24"]},"status":{"addresses":[{"type":"InternalIP","address":")" +
           address(kNodeIps, index + 1) + R"("},{"type":"Hostname","address":")" + name +
           R"("}],"conditions":[{"type":"Ready","status":"True","reason":"KubeletReady"}]}})";
}

}  // namespace penstock::perf
