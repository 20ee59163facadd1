// SPDX-License-Identifier: Apache-2.0
// Typed annotation settings of a Service, with notices about invalid ones. The keys and values are defined in
// control/annotations/table.hpp. An invalid value affects its own setting only (ANN-G3).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "control/annotations/selector.hpp"
#include "control/annotations/value.hpp"
#include "control/model/desired.hpp"
#include "control/semantics/notices.hpp"
#include "control/semantics/policy.hpp"

namespace penstock::semantics {

using annotations::Annotations;

// The string views point into the object's annotations.
struct AnnotationSettings {
    std::optional<uint32_t> drain_timeout_s;  // ANN-01, ANN-02; same meaning as in model::Service
    uint32_t idle_timeout_s = 0;              // ANN-03; 0: the default of the protocol
    bool source_ranges_deny = false;          // ANN-04
    // ANN-05. Default means off for Pods and http for Nodes.
    enum class HealthCheck : uint8_t { Default, Off, Tcp, Http };
    HealthCheck health_check = HealthCheck::Default;
    model::Probe probe;              // ANN-06 to ANN-10; `kind` and `fails_closed` are set elsewhere
    std::optional<bool> access_log;  // ANN-11; unset: as the gateway is configured
    uint32_t access_log_interval_min = 60;
    std::string_view access_log_sink, access_log_prefix;  // ANN-12; "": the default
    std::string tags;                                     // ANN-21: is_log_tags(), or ""
    std::optional<annotations::Selector> node_selector;   // ANN-14
    bool cross_zone = true;                               // ANN-15
    std::optional<bool> only_nodes_with_endpoints;        // ANN-16; unset: depends on the traffic policy
    lb::SchedulerKind scheduler = lb::SchedulerKind::RoundRobin;  // ANN-26
    std::string_view node_weight_label;                           // ANN-27; "" none
    // Nodes as backends are weighted by their ready Pods, otherwise equally.
    bool node_weight_ready_pods = false;
    std::string_view topology_keys;                              // ANN-28, as written; "" none
    lb::EmptyAction no_endpoints = lb::EmptyAction::Reject;      // ANN-29
    lb::AffinityScope affinity_scope = lb::AffinityScope::Port;  // AFF-002
    bool translate_family = false;                               // ANN-32
    // ANN-G4: the Service requests an unsupported setting, and the operator's policy is to refuse it.
    bool withholds_load_balancer_ips = false;
    bool operator==(const AnnotationSettings&) const = default;
};

[[nodiscard]] AnnotationSettings settings_of(const Annotations& object, const Policy& policy,
                                             Notices& notices);

// How Pods of the Service are probed. Empty unless the Service requests probes (HC-010).
[[nodiscard]] std::optional<model::Probe> pod_probe_of(const AnnotationSettings& settings);

}  // namespace penstock::semantics
