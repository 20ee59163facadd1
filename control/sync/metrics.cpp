// SPDX-License-Identifier: Apache-2.0
#include "control/sync/metrics.hpp"

#include <prometheus/text_serializer.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include "control/sync/addresses/address_metrics.hpp"

namespace penstock::sync {
namespace {

using kube::CollectionStatus;
using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using Labels = std::vector<ClientMetric::Label>;

// nullopt: the series is absent.
using Value = std::optional<double>;

// One metric in a list below; `value` reads it from the subject of the list.
template <typename Subject>
struct Metric {
    MetricType type;
    const char* name;
    const char* help;
    Value (*value)(const Subject& subject);
};

constexpr MetricType kGauge = MetricType::Gauge;
constexpr MetricType kCounter = MetricType::Counter;

double seconds(std::chrono::milliseconds time) {
    return std::chrono::duration<double>(time).count();
}
Value seconds(std::optional<std::chrono::milliseconds> time) {
    return time ? Value(seconds(*time)) : std::nullopt;
}
double number(uint64_t value) {
    return static_cast<double>(value);
}

constexpr Metric<SyncReading> kOfProcess[] = {
    {kGauge, "penstock_sync_resident_memory_bytes", "resident memory of the process",
     [](const SyncReading& all) -> Value { return number(all.resident_bytes); }},
    {kGauge, "penstock_sync_uptime_seconds", "time since the process started",
     [](const SyncReading& all) -> Value { return seconds(all.uptime); }},
    {kGauge, "penstock_sync_heartbeat_age_seconds", "time since the last round of the source thread's loop",
     [](const SyncReading& all) -> Value { return seconds(all.source.heartbeat_age); }},
    {kGauge, "penstock_sync_gateways", "gateways configured with --gateway",
     [](const SyncReading& all) -> Value { return number(all.gateways.size()); }},
    {kGauge, "penstock_sync_events_enabled", "1 while Events can be written to the API server",
     [](const SyncReading& all) -> Value { return all.events.enabled ? 1 : 0; }},
    {kGauge, "penstock_sync_events_waiting", "Events not yet posted",
     [](const SyncReading& all) -> Value { return number(all.events.waiting); }},
    {kCounter, "penstock_sync_events_posted_total", "Events posted as new",
     [](const SyncReading& all) -> Value { return number(all.events.posted); }},
    {kCounter, "penstock_sync_events_repeated_total", "Events posted again with a higher count",
     [](const SyncReading& all) -> Value { return number(all.events.repeated); }},
    {kGauge, "penstock_sync_tls_certificate_start_timestamp_seconds",
     "start of the validity of the client certificate",
     [](const SyncReading& all) { return all.tls ? Value(all.tls->certificate_starts_s) : std::nullopt; }},
    {kGauge, "penstock_sync_tls_certificate_expiry_timestamp_seconds",
     "expiry time of the client certificate",
     [](const SyncReading& all) { return all.tls ? Value(all.tls->certificate_expires_s) : std::nullopt; }},
    {kGauge, "penstock_sync_tls_authority_expiry_timestamp_seconds",
     "expiry time of the CA that expires last, of those that sign gateway certificates",
     [](const SyncReading& all) { return all.tls ? Value(all.tls->authority_expires_s) : std::nullopt; }},
    {kGauge, "penstock_sync_tls_files_broken",
     "1 while the TLS files are invalid and the previous ones stay in use",
     [](const SyncReading& all) { return all.tls ? Value(all.tls->broken ? 1 : 0) : std::nullopt; }},
};

constexpr Metric<CollectionStatus> kOfCollection[] = {
    {kGauge, "penstock_sync_objects", "objects in the store",
     [](const CollectionStatus& one) -> Value { return number(one.objects); }},
    {kGauge, "penstock_sync_quarantined_objects",
     "objects whose newest version is invalid; their last good version stays in use",
     [](const CollectionStatus& one) -> Value { return number(one.quarantined); }},
    {kGauge, "penstock_sync_listed", "1 once the first list is complete",
     [](const CollectionStatus& one) -> Value { return one.listed ? 1 : 0; }},
    {kGauge, "penstock_sync_watching", "1 while a watch is open",
     [](const CollectionStatus& one) -> Value {
         return one.state == CollectionStatus::State::Watching ? 1 : 0;
     }},
    {kGauge, "penstock_sync_last_event_age_seconds", "time since the last list, event or bookmark arrived",
     [](const CollectionStatus& one) { return seconds(one.last_event_age); }},
    {kGauge, "penstock_sync_stale_seconds",
     "time since the store last followed the source; 0 while it follows",
     [](const CollectionStatus& one) { return seconds(one.stale_age); }},
    {kCounter, "penstock_sync_watch_restarts_total", "watches opened after the first one",
     [](const CollectionStatus& one) -> Value { return number(one.watch_restarts); }},
    {kCounter, "penstock_sync_relists_total", "complete lists after the first one",
     [](const CollectionStatus& one) -> Value { return number(one.relists); }},
};

constexpr Metric<GatewayStatus> kOfGateway[] = {
    {kGauge, "penstock_sync_gateway_waiting",
     "1 while another control plane leads at the gateway and this one is standby",
     [](const GatewayStatus& one) -> Value { return one.leader.empty() ? 0 : 1; }},
    {kGauge, "penstock_sync_gateway_connected", "1 while the gateway's stream is open",
     [](const GatewayStatus& one) -> Value { return one.connected ? 1 : 0; }},
    {kGauge, "penstock_sync_gateway_heartbeat_age_seconds",
     "time since the last round of the gateway thread's loop",
     [](const GatewayStatus& one) -> Value { return seconds(one.heartbeat_age); }},
    {kGauge, "penstock_sync_gateway_desired_version", "newest state computed for the gateway",
     [](const GatewayStatus& one) -> Value { return number(one.desired_version); }},
    {kGauge, "penstock_sync_gateway_applied_version", "newest state applied by the gateway",
     [](const GatewayStatus& one) -> Value { return number(one.applied_version); }},
    {kGauge, "penstock_sync_gateway_lag_seconds",
     "age of the oldest change not yet applied by the gateway; 0 if it has applied all",
     [](const GatewayStatus& one) -> Value { return seconds(one.lag); }},
    {kGauge, "penstock_sync_changes_waiting", "changed objects not yet evaluated for the gateway",
     [](const GatewayStatus& one) -> Value { return number(one.changes_waiting); }},
    {kGauge, "penstock_sync_gateway_services", "service ports in the state applied by the gateway",
     [](const GatewayStatus& one) -> Value { return number(one.services); }},
    {kGauge, "penstock_sync_gateway_refused_services", "service ports refused by the gateway",
     [](const GatewayStatus& one) -> Value { return number(one.refused); }},
    {kCounter, "penstock_sync_full_states_total", "complete states sent to the gateway",
     [](const GatewayStatus& one) -> Value { return number(one.full_states); }},
    {kCounter, "penstock_sync_deltas_total", "deltas sent to the gateway",
     [](const GatewayStatus& one) -> Value { return number(one.deltas); }},
    {kCounter, "penstock_sync_audit_differences_total",
     "differences found and repaired by the audit; any value other than 0 indicates a bug",
     [](const GatewayStatus& one) -> Value { return number(one.audit_differences); }},
};

struct DropCause {
    const char* cause;
    uint64_t kube::EventsStatus::* count;
};
constexpr DropCause kDropCauses[] = {{"overflow", &kube::EventsStatus::dropped_overflow},
                                     {"rate", &kube::EventsStatus::dropped_rate},
                                     {"failed", &kube::EventsStatus::dropped_failed},
                                     {"forbidden", &kube::EventsStatus::dropped_forbidden},
                                     {"gone", &kube::EventsStatus::dropped_gone}};

void add(MetricFamily& family, Labels labels, double value) {
    ClientMetric& metric = family.metric.emplace_back();
    metric.label = std::move(labels);
    (family.type == kGauge ? metric.gauge.value : metric.counter.value) = value;
}

template <typename Subject, size_t N, typename Subjects, typename LabelsOf>
void append(std::vector<MetricFamily>& out, const Metric<Subject> (&list)[N], const Subjects& subjects,
            const LabelsOf& labels_of) {
    for (const Metric<Subject>& metric : list) {
        MetricFamily family{metric.name, metric.help, metric.type, {}};
        for (const Subject& subject : subjects) {
            if (const Value value = metric.value(subject)) {
                add(family, labels_of(subject), *value);
            }
        }
        out.push_back(std::move(family));
    }
}

// Errors that have a series from the start. rate() does not count the increase with which a series begins.
constexpr const char* kUsualErrors[] = {"connect",  "tls",      "timeout",  "broken",  "decode",
                                        "http_401", "http_403", "http_429", "http_500"};

MetricFamily errors(const std::vector<CollectionStatus>& collections) {
    MetricFamily family{
        "penstock_sync_errors_total", "failed requests and invalid objects, by kind of error", kCounter, {}};
    for (const CollectionStatus& collection : collections) {
        std::map<std::string, uint64_t> counts = collection.errors;
        for (const char* error : kUsualErrors) {
            counts.try_emplace(error, 0);
        }
        for (const auto& [error, count] : counts) {
            add(family, {{"kind", collection.kind}, {"error", error}}, number(count));
        }
    }
    return family;
}

MetricFamily notices(const std::vector<GatewayStatus>& gateways) {
    MetricFamily family{"penstock_sync_notices_total", "notices about objects, by reason", kCounter, {}};
    for (const GatewayStatus& gateway : gateways) {
        for (const auto& [reason, count] : gateway.notices) {
            add(family, {{"gateway", gateway.target}, {"reason", reason}}, number(count));
        }
    }
    return family;
}

MetricFamily dropped_events(const kube::EventsStatus& events) {
    MetricFamily family{"penstock_sync_events_dropped_total", "Events not posted, by cause", kCounter, {}};
    for (const DropCause& cause : kDropCauses) {
        add(family, {{"cause", cause.cause}}, number(events.*cause.count));
    }
    return family;
}

MetricFamily apply_latency(const std::vector<GatewayStatus>& gateways) {
    MetricFamily family{
        "penstock_sync_apply_latency_seconds",
        "time from the arrival of a change to the gateway's confirmation that its workers use it",
        MetricType::Histogram,
        {}};
    for (const GatewayStatus& gateway : gateways) {
        ClientMetric& metric = family.metric.emplace_back();
        metric.label = {{"gateway", gateway.target}};
        uint64_t so_far = 0;
        for (size_t i = 0; i < gateway.apply_latency.counts.size(); ++i) {
            so_far += gateway.apply_latency.counts[i];
            const bool is_last = i == LatencyHistogram::kBounds.size();
            metric.histogram.bucket.push_back(
                {so_far, is_last ? std::numeric_limits<double>::infinity() : LatencyHistogram::kBounds[i]});
        }
        metric.histogram.sample_count = so_far;
        metric.histogram.sample_sum = gateway.apply_latency.sum_s;
    }
    return family;
}

}  // namespace

std::vector<MetricFamily> families(const SyncReading& reading) {
    std::vector<MetricFamily> out;
    MetricFamily build{"penstock_sync_build_info", "always 1; the version is a label", kGauge, {}};
    add(build, {{"version", reading.version}}, 1);
    out.push_back(std::move(build));
    append(out, kOfProcess, std::span(&reading, 1), [](const SyncReading&) { return Labels{}; });
    append(out, kOfCollection, reading.source.collections,
           [](const CollectionStatus& one) { return Labels{{"kind", one.kind}}; });
    append(out, kOfGateway, reading.gateways,
           [](const GatewayStatus& one) { return Labels{{"gateway", one.target}}; });
    out.push_back(errors(reading.source.collections));
    out.push_back(notices(reading.gateways));
    out.push_back(apply_latency(reading.gateways));
    out.push_back(dropped_events(reading.events));
    std::ranges::move(address_families(reading.addresses), std::back_inserter(out));
    return out;
}

std::string metrics_text(const SyncReading& reading) {
    return prometheus::TextSerializer().Serialize(families(reading));
}

uint64_t resident_bytes() {
    std::ifstream statm("/proc/self/statm");
    uint64_t total_pages = 0;
    uint64_t resident_pages = 0;
    if (!(statm >> total_pages >> resident_pages)) {
        return 0;
    }
    return resident_pages * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace penstock::sync
