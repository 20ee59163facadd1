// SPDX-License-Identifier: Apache-2.0
#include "control/annotations/refused.hpp"

#include <algorithm>
#include <array>

namespace penstock::annotations {
namespace {

constexpr std::string_view kNoProxyProtocol = "endpoints are not told the client's address by PROXY protocol";
constexpr std::string_view kNoBandwidth = "the bandwidth of a Service is not limited";
constexpr std::string_view kNoVipNames =
    "addresses have no names; penstock.io/load-balancer-ips requests an address";
constexpr std::string_view kNoFilterGroups =
    "sets of source ranges have no names; spec.loadBalancerSourceRanges lists ranges";
constexpr std::string_view kNoListeners = "there are no listeners of a cloud load balancer";

constexpr std::array kRefusedKeys = {
    RefusedKey{"penstock.io/proxy-protocol", "ANN-13", kNoProxyProtocol},
    RefusedKey{"service.beta.kubernetes.io/aws-load-balancer-proxy-protocol", "ANN-13", kNoProxyProtocol},
    RefusedKey{"penstock.io/proxy-protocol-ports", "ANN-13", kNoProxyProtocol},
    RefusedKey{"penstock.io/max-bandwidth-out-mbps", "ANN-18", kNoBandwidth},
    RefusedKey{"service.kubernetes.io/qcloud-loadbalancer-internet-max-bandwidth-out", "ANN-18",
               kNoBandwidth},
    RefusedKey{"penstock.io/vip-id", "ANN-19", kNoVipNames},
    RefusedKey{"service.kubernetes.io/tke-existed-lbid", "ANN-19", kNoVipNames},
    RefusedKey{"penstock.io/filter-groups", "ANN-25", kNoFilterGroups},
    RefusedKey{"service.beta.kubernetes.io/aws-load-balancer-extra-security-groups", "ANN-25",
               kNoFilterGroups},
    RefusedKey{"service.kubernetes.io/service.extensiveParameters", "ANN-31", kNoListeners},
    RefusedKey{"service.kubernetes.io/service.listenerParameters", "ANN-31", kNoListeners},
    RefusedKey{"service.beta.kubernetes.io/external-traffic", "ANN-31",
               "spec.externalTrafficPolicy has replaced it"},
    RefusedKey{"service.beta.kubernetes.io/healthcheck-nodeport", "ANN-31",
               "spec.healthCheckNodePort has replaced it"},
};

}  // namespace

std::span<const RefusedKey> refused_keys() noexcept {
    return kRefusedKeys;
}

const RefusedKey* find_refused(std::string_view key) noexcept {
    const auto* const found = std::ranges::find(kRefusedKeys, key, &RefusedKey::key);
    return found == kRefusedKeys.end() ? nullptr : found;
}

}  // namespace penstock::annotations
