// The settings that a Service carries as annotations, typed, with what there is to complain about. Which keys and values there are is the
// table's matter (control/annotations/table.hpp). A value that cannot be used costs that setting and nothing else (ANN-G3).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "control/annotations/selector.hpp"
#include "control/annotations/value.hpp"
#include "control/model/desired.hpp"
#include "control/semantics/notices.hpp"
#include "control/semantics/semantics.hpp"

namespace penstock::semantics {

using annotations::Annotations;

// Views point into the object's annotations.
struct AnnotationSettings {
    std::optional<uint32_t> drain_timeout_s;  // ANN-01, ANN-02; as model::Service has it
    uint32_t idle_timeout_s = 0;              // ANN-03; 0: by protocol
    bool source_ranges_deny = false;          // ANN-04
    // ANN-05. Default is off for Pods and http for Nodes.
    enum class HealthCheck : uint8_t { Default, Off, Tcp, Http };
    HealthCheck health_check = HealthCheck::Default;
    model::Probe probe;  // ANN-06 to ANN-10; kind and fails_closed are not from here
    std::optional<annotations::Selector> node_selector;           // ANN-14
    bool cross_zone = true;                                       // ANN-15
    std::optional<bool> only_nodes_with_endpoints;                // ANN-16; unset: by policy
    lb::SchedulerKind scheduler = lb::SchedulerKind::RoundRobin;  // ANN-26
    std::string_view node_weight_label;                           // ANN-27; "" none
    bool node_weight_ready_pods = false;                          // of Nodes as backends; else all are alike
    std::string_view topology_keys;                               // ANN-28, as written; "" none
    lb::EmptyAction no_endpoints = lb::EmptyAction::Reject;       // ANN-29
    lb::AffinityScope affinity_scope = lb::AffinityScope::Port;   // AFF-002
    bool translate_family = false;                                // ANN-32
    bool withholds_load_balancer_ips =
        false;  // ANN-G4: asks for what we cannot do, and the operator refuses that
    bool operator==(const AnnotationSettings&) const = default;
};

[[nodiscard]] AnnotationSettings settings_of(const Annotations& object, const Policy& policy,
                                             Notices& notices);

// How Pods of the Service are probed; not at all unless it asks for it (HC-010).
[[nodiscard]] std::optional<model::Probe> pod_probe_of(const AnnotationSettings& settings);

}  // namespace penstock::semantics
