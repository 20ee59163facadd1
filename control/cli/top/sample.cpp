// SPDX-License-Identifier: Apache-2.0
#include "control/cli/top/sample.hpp"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include "control/cli/text.hpp"
#include "dataplane/base/check.hpp"
#include "dataplane/base/ip.hpp"

namespace penstock::cli::top {
namespace {

uint64_t microseconds(double ratio, uint64_t milliseconds) {
    return static_cast<uint64_t>(std::max(0.0, ratio) * static_cast<double>(milliseconds) * 1000.0);
}

// In hundredths of a percent.
uint64_t part_of(uint64_t part, uint64_t whole) {
    return whole == 0 ? 0 : part * 10'000 / whole;
}

Result<std::vector<Row>> services_in(Gateway& gateway, const ServiceName& which) {
    v1::ListServicesRequest request;
    request.set_namespace_(which.namespace_name);
    request.set_name(which.name);
    PENSTOCK_TRY(const auto answer, gateway.services(request));
    std::vector<Row> rows;
    for (const v1::ServiceStatus& service : answer.services()) {
        const v1::Traffic& traffic = service.traffic();
        rows.push_back({text_of(service.desired().key()),
                        {traffic.new_flows(), traffic.forward_packets(), traffic.reverse_packets(),
                         traffic.forward_bytes(), traffic.reverse_bytes(),
                         traffic.rejected() + traffic.dropped(), service.connections()},
                        ""});
    }
    return rows;
}

Result<std::vector<Row>> backends_in(Gateway& gateway, const ServiceName& which) {
    v1::ListBackendsRequest request;
    request.set_namespace_(which.namespace_name);
    request.set_service(which.name);
    PENSTOCK_TRY(const auto answer, gateway.backends(request));
    std::vector<Row> rows;
    for (const v1::BackendStatus& backend : answer.backends()) {
        const std::string state = backend.sets().empty() ? "draining" : health_text(backend.health());
        rows.push_back({socket_text(backend.endpoint().address(), backend.endpoint().port()) + " " +
                            text_of(backend.service()),
                        {backend.new_flows(), backend.open_connections(), backend.connections()},
                        state});
    }
    return rows;
}

std::vector<Row> workers_in(const v1::ListWorkersResponse& workers, uint64_t uptime_ms) {
    std::vector<Row> rows;
    for (const v1::Worker& worker : workers.workers()) {
        rows.push_back({std::to_string(worker.id()) + " on CPU " + std::to_string(worker.core()),
                        {worker.packets(), worker.handed_in(), worker.handed_off(),
                         microseconds(worker.busy_ratio(), uptime_ms), worker.open_connections(),
                         part_of(worker.connections(), worker.connections_max())},
                        ""});
    }
    return rows;
}

std::vector<Row> ports_in(const v1::ListPortsResponse& ports) {
    std::vector<Row> rows;
    for (const v1::Port& port : ports.ports()) {
        rows.push_back({port.twin(),
                        {port.rx_packets(), port.tx_packets(), port.rx_bytes(), port.tx_bytes(),
                         port.rx_missed(), port.handed_off(), port.punted()},
                        port.link_up() ? "up" : "down"});
    }
    return rows;
}

std::vector<Row> drops_in(const v1::Counters& counters) {
    std::vector<Row> rows;
    for (const v1::DropCounter& drop : counters.drops()) {
        if (drop.packets() > 0) {
            rows.push_back({drop.reason(), {drop.packets(), drop.packets()}, drop.meaning()});
        }
    }
    return rows;
}

// "192.0.2.0/24", "2001:db8:1::/56": the networks by which the gateway limits its answers.
std::string client_network(const std::string& client) {
    const auto address = IpAddr::parse(client);
    if (!address) {
        return client;
    }
    const bool is_v4 = address->is_v4();
    auto bytes = address->bytes();
    constexpr size_t kV6PrefixBytes = 7;
    if (!is_v4) {
        std::fill(bytes.begin() + kV6PrefixBytes, bytes.end(), uint8_t{0});
    }
    const IpAddr network = is_v4 ? IpAddr::v4(bytes[12], bytes[13], bytes[14], 0) : IpAddr::v6(bytes);
    return network.to_string() + (is_v4 ? "/24" : "/56");
}

bool matches(const ServiceName& which, const v1::ServiceKey& service) {
    return (which.namespace_name.empty() || which.namespace_name == service.namespace_()) &&
           (which.name.empty() || which.name == service.name());
}

// The gateway has no counters by client: the connections in its tables are counted.
Result<std::vector<Row>> clients_in(Gateway& gateway, const ServiceName& which, std::string& note) {
    v1::ListConnectionsRequest request;
    request.set_limit(kClientConnectionsMax);
    std::map<std::string, Row> by_prefix;
    uint32_t read = 0;
    PENSTOCK_TRY_STATUS(gateway.connections(request, [&](const v1::Connection& connection) {
        ++read;
        if (!matches(which, connection.service())) {
            return;
        }
        std::string prefix = client_network(connection.client().address());
        Row& row = by_prefix.try_emplace(prefix, Row{prefix, {0, 0}, ""}).first->second;
        row.values[0] += 1;
        row.values[1] += connection.age_ms() < 10'000 ? 1 : 0;
    }));
    if (read >= kClientConnectionsMax) {
        note = "of " + std::to_string(read) + " connections that were read; there may be more";
    }
    std::vector<Row> rows;
    for (auto& [prefix, row] : by_prefix) {
        rows.push_back(std::move(row));
    }
    return rows;
}

std::vector<uint64_t> totals_of(const v1::Status& status, const v1::ListPortsResponse& ports,
                                const v1::Counters& counters) {
    std::vector<uint64_t> totals(std::size(kTotals), 0);
    for (const v1::Port& port : ports.ports()) {
        totals[0] += port.rx_packets();
        totals[1] += port.rx_bytes();
        totals[2] += port.tx_packets();
        totals[3] += port.tx_bytes();
    }
    for (const v1::DropCounter& drop : counters.drops()) {
        totals[4] += drop.packets();
    }
    totals[5] = status.has_open_connections() ? status.open_connections() : status.connections();
    totals[6] = part_of(status.connections(), status.connections_max());
    return totals;
}

// `before`: nullopt for a new row.
double rate_of(Kind kind, std::optional<uint64_t> before, uint64_t after, double seconds) {
    const auto per_second = [&] {
        const uint64_t start = before && *before <= after ? *before : 0;
        return seconds > 0 ? static_cast<double>(after - start) / seconds : 0.0;
    };
    constexpr double kMicrosecondsPerPercent = 1e4;
    switch (kind) {
        case Kind::Count:
            return static_cast<double>(after);
        case Kind::Percent:
            return static_cast<double>(after) / 100.0;
        case Kind::Rate:
            return per_second();
        case Kind::Bits:
            return per_second() * 8;
        case Kind::Share:
            return std::min(100.0, per_second() / kMicrosecondsPerPercent);
    }
    return 0;
}

template <typename Columns>
std::vector<double> rates_of(const Columns& columns, const std::vector<uint64_t>* before,
                             const std::vector<uint64_t>& after, double seconds) {
    std::vector<double> rates;
    size_t at = 0;
    for (const Column& column : columns) {
        const auto start = before == nullptr ? std::nullopt : std::optional((*before)[at]);
        rates.push_back(rate_of(column.kind, start, after[at], seconds));
        ++at;
    }
    return rates;
}

}  // namespace

std::span<const ViewSpec> all_views() {
    static const std::vector<ViewSpec> kViews{
        {View::Services,
         "services",
         's',
         "SERVICE",
         {{"NEW/S", "new_flows_per_second", Kind::Rate},
          {"FWD-P/S", "forward_packets_per_second", Kind::Rate},
          {"REV-P/S", "reverse_packets_per_second", Kind::Rate},
          {"FWD-BIT", "forward_bits_per_second", Kind::Bits},
          {"REV-BIT", "reverse_bits_per_second", Kind::Bits},
          {"REFUSED", "refused_flows_per_second", Kind::Rate},
          {"CONNS", "connections", Kind::Count}},
         ""},
        {View::Backends,
         "backends",
         'b',
         "BACKEND",
         {{"NEW/S", "new_flows_per_second", Kind::Rate},
          {"OPEN", "open_connections", Kind::Count},
          {"CONNS", "connections", Kind::Count}},
         "STATE"},
        {View::Workers,
         "workers",
         'w',
         "WORKER",
         {{"PKTS/S", "packets_per_second", Kind::Rate},
          {"IN/S", "handed_in_per_second", Kind::Rate},
          {"OFF/S", "handed_off_per_second", Kind::Rate},
          {"BUSY%", "busy_percent", Kind::Share},
          {"OPEN", "open_connections", Kind::Count},
          {"TABLE%", "connection_table_percent", Kind::Percent}},
         ""},
        {View::Ports,
         "ports",
         'p',
         "PORT",
         {{"RX-P/S", "rx_packets_per_second", Kind::Rate},
          {"TX-P/S", "tx_packets_per_second", Kind::Rate},
          {"RX-BIT", "rx_bits_per_second", Kind::Bits},
          {"TX-BIT", "tx_bits_per_second", Kind::Bits},
          {"MISSED", "rx_missed_per_second", Kind::Rate},
          {"OFF/S", "handed_off_per_second", Kind::Rate},
          {"HOST/S", "punted_per_second", Kind::Rate}},
         "LINK"},
        {View::Drops,
         "drops",
         'd',
         "DROP-REASON",
         {{"DROPS/S", "drops_per_second", Kind::Rate}, {"TOTAL", "drops", Kind::Count}},
         "MEANING"},
        {View::Clients,
         "clients",
         'c',
         "CLIENTS",
         {{"CONNS", "connections", Kind::Count}, {"<10S-OLD", "connections_younger_than_10s", Kind::Count}},
         ""},
    };
    return kViews;
}

const ViewSpec& spec_of(View view) {
    const auto found = std::ranges::find(all_views(), view, &ViewSpec::view);
    PENSTOCK_CHECK(found != all_views().end());
    return *found;
}

Result<Sample> take_sample(Gateway& gateway, View view, const ServiceName& which) {
    PENSTOCK_TRY(const auto status, gateway.status());
    PENSTOCK_TRY(const auto ports, gateway.ports());
    PENSTOCK_TRY(const auto counters, gateway.counters());
    Sample sample{.taken = std::chrono::steady_clock::now(),
                  .gateway = status.identity().gateway_name(),
                  .uptime_ms = status.uptime_ms(),
                  .view = view,
                  .rows = {},
                  .totals = totals_of(status, ports, counters),
                  .note = {}};
    switch (view) {
        case View::Services: {
            PENSTOCK_TRY(sample.rows, services_in(gateway, which));
            break;
        }
        case View::Backends: {
            PENSTOCK_TRY(sample.rows, backends_in(gateway, which));
            break;
        }
        case View::Workers: {
            PENSTOCK_TRY(const auto workers, gateway.workers());
            sample.rows = workers_in(workers, sample.uptime_ms);
            break;
        }
        case View::Ports:
            sample.rows = ports_in(ports);
            break;
        case View::Drops:
            sample.rows = drops_in(counters);
            break;
        case View::Clients: {
            PENSTOCK_TRY(sample.rows, clients_in(gateway, which, sample.note));
            break;
        }
    }
    return sample;
}

Rates rates_between(const Sample& before, const Sample& after) {
    const std::chrono::duration<double> elapsed = after.taken - before.taken;
    Rates rates{.rows = {}, .totals = {}, .interval_s = elapsed.count(), .restarted = false};
    // The clocks of both processes differ: a restarted gateway is clearly younger than the former reading.
    rates.restarted = after.uptime_ms < before.uptime_ms;
    if (rates.restarted) {
        rates.interval_s = std::min(rates.interval_s, static_cast<double>(after.uptime_ms) / 1000.0);
    }
    std::unordered_map<std::string_view, const Row*> former;
    for (const Row& row : before.rows) {
        former.emplace(row.name, &row);
    }
    for (const Row& row : after.rows) {
        const auto found = rates.restarted ? former.end() : former.find(row.name);
        rates.rows.push_back(
            {row.name,
             rates_of(spec_of(after.view).columns, found == former.end() ? nullptr : &found->second->values,
                      row.values, rates.interval_s),
             row.remark});
    }
    rates.totals =
        rates_of(kTotals, rates.restarted ? nullptr : &before.totals, after.totals, rates.interval_s);
    return rates;
}

}  // namespace penstock::cli::top
