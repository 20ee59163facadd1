// SPDX-License-Identifier: Apache-2.0
#include "control/annotations/table.hpp"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "control/annotations/refused.hpp"
#include "control/base/log_names.hpp"
#include "control/base/nearest.hpp"

namespace penstock::annotations {
namespace {

constexpr Rule kBool{.kind = Kind::Bool};

constexpr Rule number(int64_t min, int64_t max, std::string_view unit = "", uint32_t worth = 1) {
    return {.kind = Kind::Number, .min = min, .max = max, .worth = worth, .unit = unit};
}
constexpr Rule seconds(int64_t min, int64_t max) {
    return {.kind = Kind::Duration, .min = min, .max = max, .unit = "s"};
}
constexpr Rule of_kind(Kind kind, int64_t min = 0, int64_t max = 0) {
    return {.kind = kind, .min = min, .max = max};
}
constexpr Rule words(std::span<const Word> known) {
    return {.kind = Kind::Word, .words = known};
}
constexpr Rule any_case(std::span<const Word> known, std::string_view any_other_means = "") {
    return {.kind = Kind::Word, .words = known, .any_case = true, .any_other_means = any_other_means};
}

constexpr int64_t kTextMax = 253;  // limit of a DNS name
constexpr Rule kObjectName = of_kind(Kind::Name, 1, kTextMax);
constexpr Rule kAnyText = of_kind(Kind::Text, 1, 256 * 1024);

constexpr std::array kSchedulerNames = {Word{"rr", "rr"},         Word{"wrr", "wrr"}, Word{"lc", "lc"},
                                        Word{"wlc", "wlc"},       Word{"sh", "sh"},   Word{"dh", "dh"},
                                        Word{"sed", "sed"},       Word{"nq", "nq"},   Word{"p2c", "p2c"},
                                        Word{"random", "random"}, Word{"mh", "mh"}};
constexpr std::array kCiliumAlgorithms = {Word{"random", "random"}, Word{"maglev", "mh"}};
constexpr std::array kAllowDeny = {Word{"allow", "allow"}, Word{"deny", "deny"}};
constexpr std::array kHealthChecks = {Word{"off", "off"}, Word{"tcp", "tcp"}, Word{"http", "http"}};
constexpr std::array kTrafficPort = {Word{"traffic-port", "0"}};
constexpr std::array kLogIntervals = {Word{"5", "5"}, Word{"60", "60"}};
constexpr std::array kScopes = {Word{"internal", "internal"}, Word{"external", "external"}};
constexpr std::array kInternalUnlessFalse = {Word{"false", "external"}};
constexpr std::array kInternalBool = {Word{"true", "internal"}, Word{"1", "internal"},
                                      Word{"t", "internal"},    Word{"false", "external"},
                                      Word{"0", "external"},    Word{"f", "external"}};
constexpr std::array kPassthrough = {Word{"passthrough", "passthrough"}};
constexpr std::array kBackendProtocols = {Word{"tcp", "passthrough"}, Word{"ssl", "passthrough"},
                                          Word{"http", "terminate"}, Word{"https", "terminate"}};
constexpr std::array kRejectDrop = {Word{"reject", "reject"}, Word{"drop", "drop"}};
constexpr std::array kSnatModes = {Word{"auto", "auto"}, Word{"always", "always"}, Word{"never", "never"}};
constexpr std::array kNlb = {Word{"nlb", "fine"}};
constexpr std::array kClassic = {Word{"classic", "fine"}, Word{"application", "application"}};
constexpr std::array kNodeWeights = {Word{"equal", "equal"}, Word{"ready-pods", "ready-pods"}};
constexpr std::array kAffinityScopes = {Word{"port", "port"}, Word{"service", "service"}};

constexpr std::array kConnectionDraining = {
    Spelling{"penstock.io/connection-draining", kBool},
    Spelling{"service.beta.kubernetes.io/aws-load-balancer-connection-draining-enabled", kBool}};
constexpr std::array kConnectionDrainingTimeout = {
    Spelling{"penstock.io/connection-draining-timeout", seconds(1, 3600)},
    Spelling{"service.beta.kubernetes.io/aws-load-balancer-connection-draining-timeout",
             number(1, 3600, "s")}};
constexpr std::array kIdleTimeout = {
    Spelling{"penstock.io/idle-timeout", seconds(1, 604'800)},
    Spelling{"service.beta.kubernetes.io/aws-load-balancer-connection-idle-timeout", number(1, 4000, "s")},
    Spelling{"service.beta.kubernetes.io/azure-load-balancer-tcp-idle-timeout", number(4, 30, "min", 60)}};
constexpr std::array kSourceRangesPolicy = {
    Spelling{"penstock.io/source-ranges-policy", words(kAllowDeny)},
    Spelling{"service.cilium.io/src-ranges-policy", words(kAllowDeny)}};
constexpr std::array kHealthCheck = {Spelling{"penstock.io/health-check", words(kHealthChecks)}};
constexpr std::array kHealthCheckInterval = {
    Spelling{"penstock.io/health-check-interval", seconds(5, 300)},
    Spelling{"service.beta.kubernetes.io/aws-load-balancer-healthcheck-interval", number(5, 300, "s")}};
constexpr std::array kHealthCheckTimeout = {
    Spelling{"penstock.io/health-check-timeout", seconds(2, 60)},
    Spelling{"service.beta.kubernetes.io/aws-load-balancer-healthcheck-timeout", number(2, 60, "s")}};
constexpr std::array kHealthyThreshold = {
    Spelling{"penstock.io/health-check-healthy-threshold", number(2, 10)},
    Spelling{"service.beta.kubernetes.io/aws-load-balancer-healthcheck-healthy-threshold", number(2, 10)}};
constexpr std::array kUnhealthyThreshold = {
    Spelling{"penstock.io/health-check-unhealthy-threshold", number(2, 10)},
    Spelling{"service.beta.kubernetes.io/aws-load-balancer-healthcheck-unhealthy-threshold", number(2, 10)}};
constexpr Rule kProbePort{.kind = Kind::Number, .min = 1, .max = 65'535, .words = kTrafficPort};
constexpr std::array kHealthCheckPort = {
    Spelling{"penstock.io/health-check-port", number(1, 65'535)},
    Spelling{"service.beta.kubernetes.io/aws-load-balancer-healthcheck-port", kProbePort}};
constexpr std::array kHealthCheckPath = {
    Spelling{"penstock.io/health-check-path", of_kind(Kind::UrlPath, 1, 1024)},
    Spelling{"service.beta.kubernetes.io/aws-load-balancer-healthcheck-path",
             of_kind(Kind::UrlPath, 1, 1024)}};
constexpr std::array kAccessLog = {
    Spelling{"penstock.io/access-log", kBool},
    Spelling{"service.beta.kubernetes.io/aws-load-balancer-access-log-enabled", kBool}};
constexpr std::array kAccessLogInterval = {
    Spelling{"penstock.io/access-log-interval", words(kLogIntervals)},
    Spelling{"service.beta.kubernetes.io/aws-load-balancer-access-log-emit-interval", words(kLogIntervals)}};
constexpr Rule kLogSink = of_kind(Kind::Name, kLogSinkMin, kLogSinkMax);
constexpr std::array kAccessLogSink = {
    Spelling{"penstock.io/access-log-sink", kLogSink},
    Spelling{"service.beta.kubernetes.io/aws-load-balancer-access-log-s3-bucket-name", kLogSink}};
constexpr Rule kLogPrefix = of_kind(Kind::FolderPath, 1, kLogPrefixMax);
constexpr std::array kAccessLogPrefix = {
    Spelling{"penstock.io/access-log-prefix", kLogPrefix},
    Spelling{"service.beta.kubernetes.io/aws-load-balancer-access-log-s3-bucket-prefix", kLogPrefix}};
constexpr std::array kTags = {
    Spelling{"penstock.io/tags", of_kind(Kind::List)},
    Spelling{"service.beta.kubernetes.io/aws-load-balancer-additional-resource-tags", of_kind(Kind::List)}};
constexpr std::array kBackendNodeSelector = {
    Spelling{"penstock.io/backend-node-selector", of_kind(Kind::Selector)},
    Spelling{"service.kubernetes.io/qcloud-loadbalancer-backends-label", of_kind(Kind::Selector)}};
constexpr std::array kCrossZone = {
    Spelling{"penstock.io/cross-zone", kBool},
    Spelling{"service.beta.kubernetes.io/aws-load-balancer-cross-zone-load-balancing-enabled", kBool}};
constexpr std::array kOnlyNodesWithEndpoints = {
    Spelling{"penstock.io/only-nodes-with-endpoints", kBool},
    Spelling{"service.kubernetes.io/local-svc-only-bind-node-with-pod", kBool}};
constexpr std::array kScope = {
    Spelling{"penstock.io/scope", any_case(kScopes)},
    Spelling{"cloud.google.com/load-balancer-type", any_case(kScopes)},
    Spelling{"networking.gke.io/load-balancer-type", any_case(kScopes)},
    Spelling{"service.beta.kubernetes.io/aws-load-balancer-internal",
             any_case(kInternalUnlessFalse, "internal")},
    Spelling{"service.beta.kubernetes.io/azure-load-balancer-internal", any_case(kInternalBool)},
    Spelling{"service.beta.kubernetes.io/openstack-internal-load-balancer", any_case(kInternalBool)},
    Spelling{"service.beta.kubernetes.io/cce-load-balancer-internal-vpc", any_case(kInternalBool)},
    Spelling{"service.kubernetes.io/qcloud-loadbalancer-internal-subnetid", any_case({}, "internal")}};
constexpr std::array kTlsMode = {
    Spelling{"penstock.io/tls-mode", words(kPassthrough)},
    Spelling{"service.beta.kubernetes.io/aws-load-balancer-ssl-cert", any_case({}, "terminate")},
    Spelling{"service.beta.kubernetes.io/aws-load-balancer-ssl-ports", any_case({}, "terminate")},
    Spelling{"service.beta.kubernetes.io/aws-load-balancer-ssl-negotiation-policy",
             any_case({}, "terminate")},
    Spelling{"service.beta.kubernetes.io/aws-load-balancer-backend-protocol", any_case(kBackendProtocols)}};
constexpr Rule kAddresses = of_kind(Kind::OneAddressPerFamily);
constexpr std::array kLoadBalancerIps = {
    Spelling{"penstock.io/load-balancer-ips", kAddresses}, Spelling{"metallb.io/loadBalancerIPs", kAddresses},
    Spelling{"metallb.universe.tf/loadBalancerIPs", kAddresses}, Spelling{"lbipam.cilium.io/ips", kAddresses},
    Spelling{"io.cilium/lb-ipam-ips", kAddresses}};
constexpr std::array kAddressPool = {Spelling{"penstock.io/address-pool", kObjectName},
                                     Spelling{"metallb.io/address-pool", kObjectName},
                                     Spelling{"metallb.universe.tf/address-pool", kObjectName}};
constexpr Rule kSharingKey = of_kind(Kind::Text, 1, kTextMax);
constexpr std::array kAllowSharedIp = {Spelling{"penstock.io/allow-shared-ip", kSharingKey},
                                       Spelling{"metallb.io/allow-shared-ip", kSharingKey},
                                       Spelling{"metallb.universe.tf/allow-shared-ip", kSharingKey},
                                       Spelling{"lbipam.cilium.io/sharing-key", kSharingKey}};
constexpr std::array kAnyNamespace = {Word{"*", "*"}};
constexpr Rule kNamespaces = {.kind = Kind::Names, .min = 1, .max = 63, .words = kAnyNamespace};
constexpr std::array kSharedIpNamespaces = {
    Spelling{"penstock.io/allow-shared-ip-namespaces", kNamespaces},
    Spelling{"lbipam.cilium.io/sharing-cross-namespace", kNamespaces}};
constexpr std::array kScheduler = {Spelling{"penstock.io/scheduler", any_case(kSchedulerNames)},
                                   Spelling{"kube-router.io/service.scheduler", any_case(kSchedulerNames)},
                                   Spelling{"service.cilium.io/lb-algorithm", any_case(kCiliumAlgorithms)}};
constexpr std::array kNodeWeightLabel = {Spelling{"penstock.io/node-weight-label", of_kind(Kind::LabelKey)}};
constexpr std::array kTopologyKeys = {Spelling{"penstock.io/topology-keys", of_kind(Kind::List)}};
constexpr std::array kNoEndpointsAction = {Spelling{"penstock.io/no-endpoints-action", words(kRejectDrop)}};
constexpr std::array kSnat = {Spelling{"penstock.io/snat", words(kSnatModes)}};
constexpr std::array kLoadBalancerKind = {
    Spelling{"service.beta.kubernetes.io/aws-load-balancer-type", any_case(kNlb, "other")},
    Spelling{"service.kubernetes.io/loadbalance-type", words(kClassic)}};
constexpr std::array kInternetChargeType = {
    Spelling{"service.kubernetes.io/qcloud-loadbalancer-internet-charge-type", kAnyText}};
constexpr std::array kTranslateFamily = {Spelling{"penstock.io/translate-family", kBool}};
constexpr std::array kSourceRanges = {
    Spelling{"service.beta.kubernetes.io/load-balancer-source-ranges", of_kind(Kind::List)}};
constexpr std::array kExternalIps = {Spelling{"penstock.io/external-ips", of_kind(Kind::List)}};
constexpr std::array kAffinityScope = {Spelling{"penstock.io/affinity-scope", words(kAffinityScopes)}};
constexpr std::array kNodeWeight = {Spelling{"penstock.io/node-weight", words(kNodeWeights)}};

constexpr std::array<SettingSpec, kSettings> kSpecs = {{
    {Setting::ConnectionDraining, "ANN-01", kConnectionDraining, "unset",
     "established flows of a removed endpoint: unset: they continue; false: reset at once; true: reset after "
     "the timeout",
     "it counts as unset"},
    {Setting::ConnectionDrainingTimeout, "ANN-02", kConnectionDrainingTimeout, "300 s",
     "drain time of flows if connection-draining is true", "300 s are used"},
    {Setting::IdleTimeout, "ANN-03", kIdleTimeout, "by protocol",
     "idle time after which a flow of the Service is removed, also an established one",
     "the default of the protocol is used"},
    {Setting::SourceRangesPolicy, "ANN-04", kSourceRangesPolicy, "allow",
     "whether the source ranges list the clients that may open flows to LoadBalancer IPs, or those that may "
     "not",
     "allow is used"},
    {Setting::HealthCheck, "ANN-05", kHealthCheck, "off for Pods, http for Nodes",
     "how the gateway probes endpoints", "the default is used"},
    {Setting::HealthCheckInterval, "ANN-06", kHealthCheckInterval, "10 s", "time between probes",
     "10 s are used"},
    {Setting::HealthCheckTimeout, "ANN-07", kHealthCheckTimeout, "5 s",
     "timeout of a probe; must be less than the interval", "5 s are used"},
    {Setting::HealthCheckHealthyThreshold, "ANN-08", kHealthyThreshold, "2",
     "consecutive successes after which an endpoint is up", "2 is used"},
    {Setting::HealthCheckUnhealthyThreshold, "ANN-09", kUnhealthyThreshold, "6",
     "consecutive failures after which an endpoint is down", "6 is used"},
    {Setting::HealthCheckPort, "ANN-10", kHealthCheckPort, "the endpoint's port", "probed port",
     "the endpoint's port is used"},
    {Setting::HealthCheckPath, "ANN-10", kHealthCheckPath, "/", "path of an http probe", "/ is used"},
    {Setting::AccessLog, "ANN-11", kAccessLog, "the gateway's --flow-services",
     "whether gateways write flow records of the Service; needs --flow-log or --flow-collector of the "
     "gateway; "
     "a change applies to new flows",
     "the default is used"},
    {Setting::AccessLogInterval, "ANN-11", kAccessLogInterval, "60 min",
     "time after which the file of flow records is rotated", "60 minutes are used"},
    {Setting::AccessLogSink, "ANN-12", kAccessLogSink, "default",
     "folder of the file of flow records, below the folder of --flow-log; nothing is uploaded",
     "default is used"},
    {Setting::AccessLogPrefix, "ANN-12", kAccessLogPrefix, "none",
     "folders of the file of flow records, below the folder of access-log-sink", "no prefix is used"},
    {Setting::BackendNodeSelector, "ANN-14", kBackendNodeSelector, "none",
     "only endpoints on Nodes with matching labels get new flows; if no Node matches, the Service has no "
     "endpoint",
     "it is ignored"},
    {Setting::CrossZone, "ANN-15", kCrossZone, "true",
     "if false, endpoints in the gateway's zone are preferred", "true is used", "true"},
    {Setting::OnlyNodesWithEndpoints, "ANN-16", kOnlyNodesWithEndpoints, "false; true with policy Local",
     "if Nodes are backends: use only Nodes with ready endpoints", "the default is used"},
    {Setting::Scope, "ANN-17", kScope, "external",
     "whether a LoadBalancer IP comes from internal pools only, or from the other pools only",
     "external is used"},
    {Setting::TlsMode, "ANN-20", kTlsMode, "passthrough",
     "TLS and HTTP are forwarded unchanged; the gateway does not terminate them", "passthrough is used",
     "passthrough"},
    {Setting::Tags, "ANN-21", kTags, "none",
     "KEY=VALUE pairs, at most 50, in the files of flow records and in `penstockctl describe service`",
     "the pair is skipped"},
    {Setting::LoadBalancerIps, "ANN-22", kLoadBalancerIps, "any address of the pool",
     "addresses to allocate, at most one per family; no other address is given instead",
     "no address is allocated; an address in use stays"},
    {Setting::AddressPool, "ANN-23", kAddressPool, "any pool", "pool of the LoadBalancer IP",
     "no address is allocated; an address in use stays"},
    {Setting::AllowSharedIp, "ANN-24", kAllowSharedIp, "none",
     "Services with the same key may share a LoadBalancer IP if their ports differ and they have policy "
     "Cluster or the same selector",
     "the address is not shared"},
    {Setting::SharedIpNamespaces, "ANN-24", kSharedIpNamespaces, "the Service's own",
     "other namespaces whose Services may share the LoadBalancer IP, or * for all; both Services must permit "
     "the namespace of the other one",
     "no other namespace is permitted"},
    {Setting::Scheduler, "ANN-26", kScheduler, "the gateway's",
     "scheduler that selects the endpoint of a new flow", "the gateway's own scheduler is used"},
    {Setting::NodeWeightLabel, "ANN-27", kNodeWeightLabel, "none",
     "Node label with the weight, 0-65535, of the endpoints on the Node", "every weight is 1"},
    {Setting::TopologyKeys, "ANN-28", kTopologyKeys, "none",
     "Node labels, tried in order: endpoints with the gateway's value get the new flows",
     "the list is ignored"},
    {Setting::NoEndpointsAction, "ANN-29", kNoEndpointsAction, "reject",
     "action for a new flow if the Service has no endpoint", "new flows are rejected"},
    {Setting::Snat, "ANN-30", kSnat, "auto", "whether the client's address is replaced", "auto is used",
     "auto"},
    {Setting::LoadBalancerKind, "ANN-31", kLoadBalancerKind, "none",
     "type of a cloud load balancer; Penstock forwards packets", "it is ignored", "fine"},
    {Setting::InternetChargeType, "ANN-31", kInternetChargeType, "none", "no effect: Penstock has no charges",
     "it is ignored"},
    {Setting::TranslateFamily, "ANN-32", kTranslateFamily, "false",
     "endpoints of the other IP family may serve a frontend if there are none of its own family",
     "false is used"},
    {Setting::SourceRanges, "SRC-004", kSourceRanges, "all clients",
     "CIDRs of the clients that may open flows to LoadBalancer IPs; spec.loadBalancerSourceRanges has "
     "precedence",
     "the entry is skipped"},
    {Setting::ExternalIps, "XIP-008", kExternalIps, "none",
     "external IPs in addition to spec.externalIPs, with the same permissions; read only with "
     "--external-ips-annotation",
     "the entry is skipped"},
    {Setting::AffinityScope, "AFF-002", kAffinityScope, "port",
     "scope of sessionAffinity ClientIP: port: each port of the Service separately; service: one Pod for all "
     "ports",
     "port is used"},
    {Setting::NodeWeight, "LB-019", kNodeWeight, "the value of --node-weight",
     "if Nodes are backends: equal weights, or the number of ready Pods of the Service on each Node as its "
     "weight",
     "--node-weight is used"},
}};

constexpr bool specs_are_in_order() {
    for (size_t i = 0; i < kSpecs.size(); ++i) {
        if (kSpecs[i].setting != static_cast<Setting>(i) || kSpecs[i].spellings.empty()) {
            return false;
        }
    }
    return true;
}
static_assert(specs_are_in_order(), "spec_of() takes the setting for the place");

}  // namespace

std::span<const SettingSpec> specs() noexcept {
    return kSpecs;
}

const SettingSpec& spec_of(Setting setting) noexcept {
    return kSpecs[static_cast<size_t>(setting)];
}

const SettingSpec* find(std::string_view key) noexcept {
    // There are about a hundred keys, nearly all of different lengths, so most comparisons end at the length.
    for (const SettingSpec& spec : kSpecs) {
        for (const Spelling& spelling : spec.spellings) {
            if (spelling.key == key) {
                return &spec;
            }
        }
    }
    return nullptr;
}

std::string_view nearest_native(std::string_view key) {
    // The API server allows long keys. No native key is longer than this, and the cost grows with the length.
    constexpr size_t kLongestWorthAThought = 80;
    if (key.size() > kLongestWorthAThought) {
        return "";
    }
    std::string_view nearest;
    // A key with half of its characters wrong is a different key.
    size_t fewest = (key.size() - std::min(key.size(), kNativePrefix.size())) / 2 + 1;
    const auto compare = [&](std::string_view native) {
        if (!native.starts_with(kNativePrefix)) {
            return;
        }
        if (const size_t distance = edits_between(key, native); distance < fewest) {
            fewest = distance;
            nearest = native;
        }
    };
    for (const SettingSpec& spec : kSpecs) {
        compare(spec.spellings.front().key);
    }
    for (const RefusedKey& refused : refused_keys()) {
        compare(refused.key);
    }
    return nearest;
}

std::span<const Word> scheduler_names() noexcept {
    return kSchedulerNames;
}

}  // namespace penstock::annotations
