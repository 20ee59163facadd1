// SPDX-License-Identifier: Apache-2.0
// What a Service requests from the allocator: everything in the object that a decision depends on. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "control/annotations/selector.hpp"
#include "control/ipam/allocation.hpp"
#include "control/kube/objects.hpp"
#include "control/semantics/conflicts.hpp"

namespace penstock::ipam {

// Order in which Services are served: oldest first (LB-008, SVC-018).
struct Age {
    semantics::CreationTime created;
    std::string uid;
    kube::ObjectName service;
    auto operator<=>(const Age&) const = default;
};

// LB-011: the properties of a Service that decide whether it may share an address.
struct SharingTerms {
    std::string key;  // ANN-24; "": does not share
    std::string namespace_name;
    // ANN-24: other namespaces that may share the address. "*": all.
    std::vector<std::string> namespaces;
    std::vector<std::pair<std::string, int64_t>> ports;  // protocol and port, sorted
    bool cluster_policy = true;                          // externalTrafficPolicy Cluster
    std::map<std::string, std::string> selector;
    bool operator==(const SharingTerms&) const = default;
};

// Whether Service `own` may use an address together with `other`; symmetric. On failure the reason, as part
// of a sentence.
[[nodiscard]] std::optional<std::string> why_not_shared(const SharingTerms& own, const SharingTerms& other);

// The addresses in status.loadBalancer.ingress.
struct ShownStatus {
    std::vector<IpAddr> addresses;  // in the order of the Service's families, at most one each
    bool is_ours = false;           // the condition penstock.io/Allocated is True (STATUS-003)
    bool has_unusable = false;      // entries without an IP address
    bool operator==(const ShownStatus&) const = default;
};

struct Request {
    Age age;
    annotations::Labels labels;
    std::vector<IpFamily> families;  // DUAL-001, DUAL-004: one or two, the first is preferred
    bool requires_all = false;       // RequireDualStack, or a single family
    // ANN-22 or spec.loadBalancerIP, by index_of(family).
    std::array<std::optional<IpAddr>, 2> addresses;
    std::string pool;  // ANN-23; "" any
    // ANN-17: value of an alias that names a network. It selects the pool of that name, if there is one.
    std::string pool_alias;
    bool internal = false;             // ANN-17
    std::optional<Refusal> malformed;  // the request is invalid or contradictory (LB-009, ANN-22)
    SharingTerms sharing;
    bool operator==(const Request&) const = default;

    [[nodiscard]] bool has_addresses() const noexcept { return addresses[0] || addresses[1]; }
    [[nodiscard]] bool has_family(IpFamily family) const noexcept;
};

// Only for owned Services.
[[nodiscard]] Request request_of(const kube::Service& service);
[[nodiscard]] ShownStatus shown_status_of(const kube::Service& service, const Request& request);

}  // namespace penstock::ipam
