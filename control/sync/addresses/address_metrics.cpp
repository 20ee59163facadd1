// SPDX-License-Identifier: Apache-2.0
#include "control/sync/addresses/address_metrics.hpp"

#include <map>
#include <utility>

namespace penstock::sync {
namespace {

using kube::WriteCounts;
using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

void add_series(MetricFamily& family, std::vector<ClientMetric::Label> labels, uint64_t value) {
    ClientMetric& metric = family.metric.emplace_back();
    metric.label = std::move(labels);
    (family.type == MetricType::Gauge ? metric.gauge.value : metric.counter.value) =
        static_cast<double>(value);
}

MetricFamily pool_addresses(const std::optional<AddressStatus>& status) {
    MetricFamily family{
        "penstock_pool_addresses",
        "addresses of a pool: total, used by Services, and free, which excludes reserved ones",
        MetricType::Gauge,
        {}};
    if (!status) {
        return family;
    }
    for (const ipam::PoolUsage& usage : status->usage) {
        for (const IpFamily ip : {IpFamily::V4, IpFamily::V6}) {
            const ipam::AddressCounts& counts = ip == IpFamily::V4 ? usage.v4 : usage.v6;
            if (counts == ipam::AddressCounts{}) {
                continue;  // no range of this family; free = 0 would look like an exhausted pool
            }
            for (const auto& [state, count] :
                 {std::pair{"total", counts.total}, {"used", counts.used}, {"free", counts.free}}) {
                add_series(family, {{"pool", usage.pool}, {"family", to_string(ip)}, {"state", state}},
                           count);
            }
        }
    }
    return family;
}

// Every reason has a series, so that an alert can be written before the first refusal.
void add_reasons(MetricFamily& family, const std::map<ipam::RefusalReason, uint64_t>& counts) {
    static_assert(static_cast<int>(ipam::RefusalReason::NoPool) == 0);
    for (auto i = 0; i <= static_cast<int>(ipam::RefusalReason::LoadBalancerIPConflict); ++i) {
        const auto reason = static_cast<ipam::RefusalReason>(i);
        const auto count = counts.find(reason);
        add_series(family, {{"reason", ipam::to_string(reason)}}, count == counts.end() ? 0 : count->second);
    }
}

// LB-024. A refused Service may keep the addresses that it has; it is then in the second metric only.
void append_refusals(std::vector<MetricFamily>& out, const std::optional<AddressStatus>& status) {
    MetricFamily without{"penstock_services_without_address",
                         "LoadBalancer Services that get no address, by reason",
                         MetricType::Gauge,
                         {}};
    MetricFamily kept{"penstock_services_with_refused_request",
                      "LoadBalancer Services that keep their addresses although their request is refused, by "
                      "reason",
                      MetricType::Gauge,
                      {}};
    if (status) {
        std::map<ipam::RefusalReason, uint64_t> without_address, with_address;
        for (const RefusedService& refused : status->refused) {
            ++(status->addresses.contains(refused.service) ? with_address : without_address)[refused.reason];
        }
        add_reasons(without, without_address);
        add_reasons(kept, with_address);
    }
    out.push_back(std::move(without));
    out.push_back(std::move(kept));
}

struct WriteResult {
    const char* result;
    uint64_t WriteCounts::* count;
};
constexpr WriteResult kWriteResults[] = {
    {"written", &WriteCounts::written},    {"conflict", &WriteCounts::conflicts},
    {"rejected", &WriteCounts::rejected},  {"forbidden", &WriteCounts::forbidden},
    {"failed", &WriteCounts::failed},      {"gone", &WriteCounts::gone},
    {"cancelled", &WriteCounts::cancelled}};

// Leader election and writes; without series in the folder mode.
void append_writes(std::vector<MetricFamily>& out, const kube::WriteStatus* writes) {
    MetricFamily leader{"penstock_leader",
                        "1 while this process assigns addresses and writes status, 0 while it is standby",
                        MetricType::Gauge,
                        {}};
    MetricFamily transitions{"penstock_lease_transitions_total",
                             "times a process took over the Lease, as counted in it; 0 in a new Lease",
                             MetricType::Counter,
                             {}};
    MetricFamily results{"penstock_status_writes_total",
                         "writes of the status of Services and AddressPools, by result",
                         MetricType::Counter,
                         {}};
    MetricFamily pending{"penstock_status_writes_pending",
                         "objects whose newest status is not confirmed by the API server yet",
                         MetricType::Gauge,
                         {}};
    if (writes != nullptr) {
        add_series(leader, {}, writes->leadership.is_leader ? 1 : 0);
        add_series(transitions, {}, writes->leadership.transitions);
        for (const auto& [object, counts] :
             {std::pair{"service", &writes->services}, {"pool", &writes->pools}}) {
            for (const WriteResult& each : kWriteResults) {
                add_series(results, {{"object", object}, {"result", each.result}}, counts->*each.count);
            }
            add_series(pending, {{"object", object}}, counts->pending);
        }
    }
    for (MetricFamily* family : {&leader, &transitions, &results, &pending}) {
        out.push_back(std::move(*family));
    }
}

}  // namespace

std::vector<MetricFamily> address_families(const std::optional<AddressStatus>& status) {
    std::vector<MetricFamily> out;
    out.push_back(pool_addresses(status));
    append_refusals(out, status);
    append_writes(out, status && status->writes ? &*status->writes : nullptr);
    return out;
}

}  // namespace penstock::sync
