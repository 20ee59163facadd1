// SPDX-License-Identifier: Apache-2.0
#include "control/metrics/latency_families.hpp"

#include <prometheus/client_metric.h>

#include <limits>
#include <string>
#include <utility>

namespace penstock::metrics {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using Labels = std::vector<ClientMetric::Label>;

Labels labels_of(const model::ServiceKey& key) {
    return {{"namespace", key.namespace_name},
            {"service", key.name},
            {"port", key.port_name},
            {"protocol", to_string(key.protocol)}};
}
Labels labels_of(const ServiceReading& service) {
    return labels_of(service.key);
}
Labels labels_of(const BackendReading& backend) {
    Labels labels = labels_of(backend.key);
    labels.push_back({"backend", backend.endpoint});
    return labels;
}

ClientMetric metric_of(Labels labels, const LatencyReading::Histogram& histogram) {
    ClientMetric metric;
    metric.label = std::move(labels);
    uint64_t count = 0;
    for (size_t i = 0; i < histogram.buckets.size(); ++i) {
        count += histogram.buckets[i];
        const double bound = i < stats::kLatencyBoundsUs.size() ? stats::kLatencyBoundsUs[i] / 1e6
                                                                : std::numeric_limits<double>::infinity();
        metric.histogram.bucket.push_back({.cumulative_count = count, .upper_bound = bound});
    }
    metric.histogram.sample_count = count;
    metric.histogram.sample_sum = histogram.sum_s;
    return metric;
}

template <typename Object>
void add_family(std::string name, std::string help, const std::vector<Object>& objects,
                LatencyReading::Histogram LatencyReading::* which, std::vector<MetricFamily>& out) {
    MetricFamily family{std::move(name), std::move(help), prometheus::MetricType::Histogram, {}};
    for (const Object& object : objects) {
        if (object.latency) {
            family.metric.push_back(metric_of(labels_of(object), (*object.latency).*which));
        }
    }
    if (!family.metric.empty()) {
        out.push_back(std::move(family));
    }
}

}  // namespace

void add_latency_families(const Reading& reading, std::vector<MetricFamily>& out) {
    constexpr const char* kConnect = "time from a client's SYN to the SYN-ACK of its endpoint";
    constexpr const char* kFirstByte =
        "time from a client's first payload, or the end of the handshake, to the first payload of its "
        "endpoint";
    add_family("penstock_service_connect_seconds", kConnect, reading.services, &LatencyReading::connect, out);
    add_family("penstock_service_first_byte_seconds", kFirstByte, reading.services,
               &LatencyReading::first_byte, out);
    add_family("penstock_backend_connect_seconds", kConnect, reading.backends, &LatencyReading::connect, out);
    add_family("penstock_backend_first_byte_seconds", kFirstByte, reading.backends,
               &LatencyReading::first_byte, out);
}

}  // namespace penstock::metrics
