// Settings that a Service carries as annotations, under our keys and under those of the gateways that people come from (section ANN of the
// requirement sheet). A value that cannot be used costs that setting and nothing else.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "control/semantics/notices.hpp"
#include "dataplane/lb/service.hpp"

namespace penstock::semantics {

using Annotations = std::map<std::string, std::string>;

struct AnnotationValue {
    std::string_view key;
    std::string_view value;  // trimmed, never blank
};

// The first of `keys`, native before aliases, that is present and not blank; the others are ignored (ANN-G1, ANN-G2). The views point into
// `annotations` and `keys`.
[[nodiscard]] std::optional<AnnotationValue> first_set(const Annotations& annotations, std::span<const std::string_view> keys);

// ANN-26: which scheduler a Service asks for; `otherwise` where it asks for none, or for one that we cannot give.
[[nodiscard]] lb::SchedulerKind scheduler_of(const Annotations& annotations, lb::SchedulerKind otherwise, Notices& notices);

// ANN-29: what a new flow meets where the Service has no usable endpoint anywhere.
[[nodiscard]] lb::EmptyAction no_endpoints_action_of(const Annotations& annotations, Notices& notices);

}  // namespace penstock::semantics
