// SPDX-License-Identifier: Apache-2.0
// Metric families, as the units of this room build them.
#pragma once

#include <prometheus/client_metric.h>
#include <prometheus/metric_family.h>

#include <string>
#include <utility>
#include <vector>

namespace penstock::metrics {

using Labels = std::vector<prometheus::ClientMetric::Label>;

inline void add(prometheus::MetricFamily& family, Labels labels, double value) {
    prometheus::ClientMetric& metric = family.metric.emplace_back();
    metric.label = std::move(labels);
    (family.type == prometheus::MetricType::Gauge ? metric.gauge.value : metric.counter.value) = value;
}

inline prometheus::MetricFamily family_of(prometheus::MetricType type, std::string name, std::string help) {
    return {std::move(name), std::move(help), type, {}};
}
inline prometheus::MetricFamily gauge(std::string name, std::string help) {
    return family_of(prometheus::MetricType::Gauge, std::move(name), std::move(help));
}
inline prometheus::MetricFamily counter(std::string name, std::string help) {
    return family_of(prometheus::MetricType::Counter, std::move(name), std::move(help));
}

inline prometheus::MetricFamily single(prometheus::MetricFamily family, double value, Labels labels = {}) {
    add(family, std::move(labels), value);
    return family;
}

}  // namespace penstock::metrics
