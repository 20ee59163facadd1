// SPDX-License-Identifier: Apache-2.0
#include "control/metrics/prometheus.hpp"

#include <prometheus/text_serializer.h>

#include <utility>

#include "control/metrics/bfd_families.hpp"
#include "control/metrics/family.hpp"
#include "control/metrics/latency_families.hpp"
#include "control/metrics/share_families.hpp"

namespace penstock::metrics {
namespace {

using prometheus::MetricFamily;
using prometheus::MetricType;

void add_tables(std::vector<MetricFamily>& out, const TablesReading& tables) {
    out.push_back(
        single(gauge("penstock_tables_kept", "1 if connections survive the process"), tables.kept ? 1 : 0));
    out.push_back(
        single(gauge("penstock_adopted_connections", "connections of the former process that continued"),
               static_cast<double>(tables.adopted)));
    MetricFamily lost =
        gauge("penstock_adoption_lost", "connections of the former process that did not continue, by reason");
    for (const auto& [reason, count] : tables.lost) {
        add(lost, {{"reason", reason}}, static_cast<double>(count));
    }
    out.push_back(std::move(lost));
    out.push_back(single(gauge("penstock_adoption_seconds", "duration of the adoption at the start"),
                         tables.adoption_s));
    out.push_back(single(gauge("penstock_table_files_refused", "table files that this start could not use"),
                         static_cast<double>(tables.refused_files)));
    out.push_back(single(
        counter("penstock_table_name_failures_total", "names that could not be written to the table file"),
        static_cast<double>(tables.name_failures)));
}

void add_upgrades(std::vector<MetricFamily>& out, const UpgradesReading& upgrades) {
    MetricFamily ended =
        counter("penstock_upgrades_total", "upgrades since the start of the supervisor, by outcome");
    add(ended, {{"outcome", "done"}}, static_cast<double>(upgrades.done));
    add(ended, {{"outcome", "failed"}}, static_cast<double>(upgrades.failed));
    out.push_back(std::move(ended));
    out.push_back(single(gauge("penstock_upgrade_running", "1 while an upgrade is under way"),
                         upgrades.is_running ? 1 : 0));
    out.push_back(single(
        gauge("penstock_upgrade_pause_seconds", "time without forwarding in the last upgrade; 0: it failed"),
        upgrades.pause_s));
}

void add_captures(std::vector<MetricFamily>& out, const CaptureReading& captures) {
    out.push_back(single(gauge("penstock_capture_running", "1 while a packet capture runs"),
                         captures.is_running ? 1 : 0));
    out.push_back(single(counter("penstock_captures_total", "packet captures begun"),
                         static_cast<double>(captures.begun)));
    out.push_back(single(counter("penstock_capture_records_total", "records of packet captures"),
                         static_cast<double>(captures.records)));
    out.push_back(
        single(counter("penstock_capture_records_lost_total",
                       "records of packet captures that found no room, and packets left out for it"),
               static_cast<double>(captures.lost)));
}

// Levels are listed with the counts, but must be exported as gauges.
bool is_level(stats::Counter which) {
    return which == stats::Counter::Connections || which == stats::Counter::FragmentsWaiting;
}

void worker_families(const Reading& reading, std::vector<MetricFamily>& out) {
    for (size_t i = 0; i < stats::kCounters; ++i) {
        const auto& text = stats::kCounterTexts[i];
        const bool level = is_level(static_cast<stats::Counter>(i));
        MetricFamily family = family_of(level ? MetricType::Gauge : MetricType::Counter,
                                        "penstock_" + std::string(text.name) + (level ? "" : "_total"),
                                        std::string(text.meaning));
        for (size_t worker = 0; worker < reading.workers.size(); ++worker) {
            add(family, {{"worker", std::to_string(worker)}},
                static_cast<double>(reading.workers[worker].counters[i]));
        }
        out.push_back(std::move(family));
    }
    MetricFamily capacity = gauge("penstock_connections_max", "capacity of the connection table");
    MetricFamily fragments = gauge("penstock_fragments_waiting_max",
                                   "fragments that can wait for the first one of their datagram");
    MetricFamily open =
        gauge("penstock_open_connections",
              "connections that have not ended; the others remain in the table, for example in TIME-WAIT");
    MetricFamily drops = counter("penstock_drops_total", "packets dropped, by reason");
    for (size_t worker = 0; worker < reading.workers.size(); ++worker) {
        const std::string number = std::to_string(worker);
        add(capacity, {{"worker", number}}, static_cast<double>(reading.workers[worker].connections_max));
        add(open, {{"worker", number}}, static_cast<double>(reading.workers[worker].open_connections));
        add(fragments, {{"worker", number}}, limits::kFragmentsWaitingMax);
        for (size_t i = 0; i < kDropReasons; ++i) {
            add(drops, {{"reason", std::string(kDropReasonTexts[i].counter)}, {"worker", number}},
                static_cast<double>(reading.workers[worker].drops[i]));
        }
    }
    MetricFamily busy = counter("penstock_worker_busy_seconds_total",
                                "time spent in rounds that found work; its rate is the load");
    MetricFamily asleep = counter("penstock_worker_asleep_seconds_total", "time slept");
    for (size_t worker = 0; worker < reading.workers.size(); ++worker) {
        add(busy, {{"worker", std::to_string(worker)}}, reading.workers[worker].busy_s);
        add(asleep, {{"worker", std::to_string(worker)}}, reading.workers[worker].asleep_s);
    }
    out.push_back(std::move(busy));
    out.push_back(std::move(asleep));
    out.push_back(std::move(capacity));
    out.push_back(std::move(fragments));
    out.push_back(std::move(open));
    out.push_back(std::move(drops));
}

struct ServiceFamily {
    const char* name;
    const char* help;
    MetricType type;
    uint64_t ServiceReading::* value;
};

constexpr ServiceFamily kServiceFamilies[] = {
    {"penstock_service_new_flows_total", "new flows accepted", MetricType::Counter,
     &ServiceReading::new_flows},
    {"penstock_service_forward_packets_total", "packets from clients to backends", MetricType::Counter,
     &ServiceReading::forward_packets},
    {"penstock_service_forward_bytes_total", "IP bytes from clients to backends", MetricType::Counter,
     &ServiceReading::forward_bytes},
    {"penstock_service_reverse_packets_total", "packets from backends to clients", MetricType::Counter,
     &ServiceReading::reverse_packets},
    {"penstock_service_reverse_bytes_total", "IP bytes from backends to clients", MetricType::Counter,
     &ServiceReading::reverse_bytes},
    {"penstock_service_rejected_total", "new flows answered with a TCP RST or an ICMP error",
     MetricType::Counter, &ServiceReading::rejected},
    {"penstock_service_dropped_total", "new flows dropped without an answer", MetricType::Counter,
     &ServiceReading::dropped},
    {"penstock_service_connections", "current connections", MetricType::Gauge, &ServiceReading::connections},
    {"penstock_service_backends", "backends available to new flows from outside the cluster",
     MetricType::Gauge, &ServiceReading::backends},
};

void service_families(const Reading& reading, std::vector<MetricFamily>& out) {
    for (const auto& description : kServiceFamilies) {
        MetricFamily family = family_of(description.type, description.name, description.help);
        family.metric.reserve(reading.services.size());
        for (const auto& service : reading.services) {
            add(family,
                {{"namespace", service.key.namespace_name},
                 {"service", service.key.name},
                 {"port", service.key.port_name},
                 {"protocol", to_string(service.key.protocol)}},
                static_cast<double>(service.*description.value));
        }
        out.push_back(std::move(family));
    }
}

void backend_families(const Reading& reading, std::vector<MetricFamily>& out) {
    if (!reading.backends_without_series) {
        return;
    }
    MetricFamily new_flows =
        counter("penstock_backend_new_flows_total", "new flows that the scheduler sent to the backend");
    MetricFamily connections = gauge("penstock_backend_connections", "current connections of the backend");
    MetricFamily open = gauge("penstock_backend_open_connections",
                              "of these, connections that have not ended, as schedulers count them");
    for (const BackendReading& backend : reading.backends) {
        const Labels labels{{"namespace", backend.key.namespace_name},
                            {"service", backend.key.name},
                            {"port", backend.key.port_name},
                            {"protocol", to_string(backend.key.protocol)},
                            {"backend", backend.endpoint}};
        add(new_flows, labels, static_cast<double>(backend.new_flows));
        add(connections, labels, static_cast<double>(backend.connections));
        add(open, labels, static_cast<double>(backend.open_connections));
    }
    out.push_back(std::move(new_flows));
    out.push_back(std::move(connections));
    out.push_back(std::move(open));
    out.push_back(single(gauge("penstock_backends_without_series",
                               "backends without series of their own, because of --metrics-backends"),
                         static_cast<double>(*reading.backends_without_series)));
}

struct PortFamily {
    const char* name;
    const char* help;
    uint64_t PortReading::* value;
};

constexpr PortFamily kPortFamilies[] = {
    {"penstock_port_rx_packets_total", "packets received by the NIC", &PortReading::rx_packets},
    {"penstock_port_rx_bytes_total", "bytes received by the NIC", &PortReading::rx_bytes},
    {"penstock_port_tx_packets_total", "packets sent by the NIC", &PortReading::tx_packets},
    {"penstock_port_tx_bytes_total", "bytes sent by the NIC", &PortReading::tx_bytes},
    {"penstock_port_rx_missed_total", "packets dropped by the NIC or the kernel because no buffer was free",
     &PortReading::rx_missed},
    {"penstock_port_handed_off_total",
     "packets received here and handed off to the worker that owns the flow", &PortReading::handed_off},
    {"penstock_port_handoff_lost_total",
     "of these, packets dropped because the owner worker did not read them fast enough",
     &PortReading::handoff_lost},
    {"penstock_port_replies_misplaced_total",
     "replies that RSS or a flow rule should have steered to their owner worker but did not",
     &PortReading::replies_misplaced},
    {"penstock_port_punted_total", "packets given to Linux through the twin", &PortReading::punted},
    {"penstock_port_from_host_total", "packets of Linux that the workers read from the twin",
     &PortReading::from_host},
    {"penstock_port_from_host_dropped_total",
     "packets of Linux dropped because a worker did not read them fast enough",
     &PortReading::from_host_dropped},
    {"penstock_port_from_host_waits_total",
     "times that packets of Linux waited in the twin because no packet buffer was free",
     &PortReading::from_host_waits},
    {"penstock_port_twin_dropped_total", "packets dropped by Linux because the twin's queue was full",
     &PortReading::twin_dropped},
};

void port_families(const Reading& reading, std::vector<MetricFamily>& out) {
    for (const auto& description : kPortFamilies) {
        MetricFamily family = counter(description.name, description.help);
        for (const auto& port : reading.ports) {
            add(family, {{"twin", port.twin}}, static_cast<double>(port.*description.value));
        }
        out.push_back(std::move(family));
    }
    MetricFamily link = gauge("penstock_port_link_up", "1 if the link is up");
    for (const auto& port : reading.ports) {
        add(link, {{"twin", port.twin}}, port.link_up ? 1 : 0);
    }
    out.push_back(std::move(link));
}

void snat_families(const Reading& reading, std::vector<MetricFamily>& out) {
    MetricFamily ports = gauge("penstock_snat_ports", "SNAT ports available towards each endpoint");
    MetricFamily in_use = gauge("penstock_snat_ports_in_use", "SNAT ports in use, towards all endpoints");
    MetricFamily busiest = gauge("penstock_snat_ports_in_use_busiest_endpoint",
                                 "of these, those towards the endpoint (address and port) with the most");
    for (const SnatReading& snat : reading.snat) {
        const Labels labels{{"address", snat.address}, {"protocol", to_string(snat.protocol)}};
        add(ports, labels, static_cast<double>(snat.ports));
        add(in_use, labels, static_cast<double>(snat.in_use));
        add(busiest, labels, static_cast<double>(snat.busiest_endpoint));
    }
    out.push_back(std::move(ports));
    out.push_back(std::move(in_use));
    out.push_back(std::move(busiest));
}

void buffer_families(const Reading& reading, std::vector<MetricFamily>& out) {
    MetricFamily buffers = gauge("penstock_packet_buffers", "packet buffers (mbufs) of the pool");
    MetricFamily in_use = gauge("penstock_packet_buffers_in_use",
                                "of these, buffers in use: in queues, in rings or being processed");
    for (const BufferPoolReading& pool : reading.buffer_pools) {
        add(buffers, {{"pool", pool.name}}, static_cast<double>(pool.buffers));
        add(in_use, {{"pool", pool.name}}, static_cast<double>(pool.in_use));
    }
    out.push_back(std::move(buffers));
    out.push_back(std::move(in_use));
}

void flow_record_families(const FlowRecordReading& records, std::vector<MetricFamily>& out) {
    out.push_back(single(counter("penstock_flow_records_queued_total",
                                 "flow records that workers gave to the thread that writes them"),
                         static_cast<double>(records.queued)));
    MetricFamily written = counter("penstock_flow_records_written_total", "flow records, by destination");
    add(written, {{"destination", "file"}}, static_cast<double>(records.logged));
    add(written, {{"destination", "collector"}}, static_cast<double>(records.sent));
    out.push_back(std::move(written));
    MetricFamily lost =
        counter("penstock_flow_records_lost_total",
                "flow records that were not written or not sent, by reason: queue (full), disk, files (too "
                "many), collector");
    for (const auto& [reason, count] : records.lost) {
        add(lost, {{"reason", reason}}, static_cast<double>(count));
    }
    out.push_back(std::move(lost));
}

void vip_families(const VipReading& vips, std::vector<MetricFamily>& out) {
    MetricFamily presence = gauge("penstock_vips", "LoadBalancer and external IPs, by announcement");
    for (const auto& [metric, count] : vips.routes) {
        add(presence, {{"presence", "route"}, {"metric", std::to_string(metric)}},
            static_cast<double>(count));
    }
    add(presence, {{"presence", "address"}, {"metric", ""}}, static_cast<double>(vips.addresses));
    add(presence, {{"presence", "arp"}, {"metric", ""}}, static_cast<double>(vips.answered));
    add(presence, {{"presence", "none"}, {"metric", ""}}, static_cast<double>(vips.absent));
    add(presence, {{"presence", "other"}, {"metric", ""}}, static_cast<double>(vips.others));
    out.push_back(std::move(presence));
    out.push_back(single(gauge("penstock_vip_foreign_routes",
                               "VIPs that another program of the host has a route for in the main table"),
                         static_cast<double>(vips.conflicts)));
}

void probe_families(const ProbeReading& probes, std::vector<MetricFamily>& out) {
    const auto add_single = [&out](MetricFamily family, uint64_t value) {
        out.push_back(single(std::move(family), static_cast<double>(value)));
    };
    add_single(counter("penstock_probes_sent_total", "probes sent to endpoints"), probes.sent);
    add_single(counter("penstock_probes_succeeded_total", "successful probes"), probes.succeeded);
    add_single(counter("penstock_probes_failed_total", "failed probes: wrong answer, or none in time"),
               probes.failed);
    add_single(
        counter("penstock_endpoints_turned_up_total", "transitions of endpoints to up, found by probes"),
        probes.turned_up);
    add_single(
        counter("penstock_endpoints_turned_down_total", "transitions of endpoints to down, found by probes"),
        probes.turned_down);
    add_single(gauge("penstock_probe_targets", "endpoints that are probed"), probes.targets);
    add_single(gauge("penstock_probe_targets_down", "of these, endpoints that are down"), probes.down);
    add_single(
        gauge("penstock_services_failing_open",
              "service ports that use their endpoints although probes report all of them down (fail open)"),
        probes.failing_open);
}

}  // namespace

std::vector<MetricFamily> families(const Reading& reading) {
    std::vector<MetricFamily> out;
    out.push_back(single(gauge("penstock_build_info", "always 1; the version is a label"), 1,
                         {{"version", reading.version}}));
    out.push_back(single(gauge("penstock_start_time_seconds", "start time of penstockd, seconds since 1970"),
                         reading.started_s));
    out.push_back(single(gauge("penstock_control_connected", "1 while a state stream is open"),
                         reading.control_connected ? 1 : 0));
    out.push_back(single(
        gauge("penstock_applied_version", "version of the applied state, as numbered by its control plane"),
        static_cast<double>(reading.applied_version)));
    out.push_back(
        single(gauge("penstock_applied_timestamp_seconds",
                     "time at which the state in force was applied, seconds since 1970; 0: none is"),
               reading.applied_s));
    out.push_back(single(gauge("penstock_last_good_in_force",
                               "1 while the state in force is that of the state file, from before the start"),
                         reading.last_good_in_force ? 1 : 0));
    out.push_back(single(counter("penstock_snapshots_published_total", "snapshots published to all workers"),
                         static_cast<double>(reading.generation)));
    out.push_back(single(gauge("penstock_services", "service ports in the applied state"),
                         static_cast<double>(reading.services.size())));
    out.push_back(
        single(gauge("penstock_affinity_entries", "session affinity entries; some may just have expired"),
               static_cast<double>(reading.affinity_entries)));
    out.push_back(single(gauge("penstock_affinity_entries_max", "capacity of the session affinity table"),
                         static_cast<double>(reading.affinity_entries_max)));
    worker_families(reading, out);
    service_families(reading, out);
    backend_families(reading, out);
    add_latency_families(reading, out);
    port_families(reading, out);
    snat_families(reading, out);
    buffer_families(reading, out);
    probe_families(reading.probes, out);
    out.push_back(
        single(gauge("penstock_drained", "1 while health checks answer 503 because the gateway is drained"),
               reading.drained ? 1 : 0));
    out.push_back(single(gauge("penstock_vips_withheld",
                               "1 while the state of the gateway's Node withholds all VIPs from the link"),
                         reading.vips_withheld ? 1 : 0));
    if (reading.vips) {
        vip_families(*reading.vips, out);
    }
    out.push_back(
        single(gauge("penstock_ready", "1 while health checks answer 200"), reading.is_well ? 1 : 0));
    MetricFamily stalled = gauge("penstock_loop_stalled", "1 while a thread's loop is stalled");
    for (const LoopReading& loop : reading.loops) {
        add(stalled, {{"loop", loop.name}}, loop.is_stalled ? 1 : 0);
    }
    out.push_back(std::move(stalled));
    if (reading.tls) {
        out.push_back(single(gauge("penstock_tls_certificate_start_timestamp_seconds",
                                   "start of the validity of the gateway's certificate"),
                             reading.tls->certificate_starts_s));
        out.push_back(single(gauge("penstock_tls_certificate_expiry_timestamp_seconds",
                                   "expiry time of the gateway's certificate"),
                             reading.tls->certificate_expires_s));
        out.push_back(single(gauge("penstock_tls_authority_expiry_timestamp_seconds",
                                   "expiry time of the client CA that expires last"),
                             reading.tls->authority_expires_s));
        out.push_back(single(gauge("penstock_tls_files_broken",
                                   "1 while the TLS files are invalid and the previous ones stay in use"),
                             reading.tls->broken ? 1 : 0));
    }
    if (reading.connections) {
        out.push_back(single(gauge("penstock_rpc_connections", "open TCP connections of gRPC clients"),
                             static_cast<double>(reading.connections->open)));
        out.push_back(
            single(gauge("penstock_rpc_connections_max", "limit of open TCP connections of gRPC clients"),
                   static_cast<double>(reading.connections->max)));
        MetricFamily refused = counter("penstock_rpc_connections_refused_total",
                                       "refused TCP connections of gRPC clients, by rule");
        add(refused, {{"rule", "source"}}, static_cast<double>(reading.connections->refused_per_source));
        add(refused, {{"rule", "all"}}, static_cast<double>(reading.connections->refused_all));
        out.push_back(std::move(refused));
    }
    out.push_back(single(
        gauge("penstock_state_save_failing", "1 while the newest configuration is not in the state file"),
        reading.save_failing ? 1 : 0));
    out.push_back(
        single(counter("penstock_state_save_failures_total", "failed attempts to write the state file"),
               static_cast<double>(reading.save_failures)));
    add_tables(out, reading.tables);
    add_captures(out, reading.captures);
    if (reading.upgrades) {
        add_upgrades(out, *reading.upgrades);
    }
    if (reading.flow_records) {
        flow_record_families(*reading.flow_records, out);
    }
    if (reading.shares) {
        add_share_families(*reading.shares, out);
    }
    if (reading.bfd) {
        add_bfd_families(*reading.bfd, out);
    }
    return out;
}

Result<std::unique_ptr<Exporter>> Exporter::start(const std::string& address, std::function<Reading()> read) {
    auto page = [read = std::move(read)] {
        return http::Response{.body = prometheus::TextSerializer().Serialize(families(read())),
                              .content_type = "text/plain; version=0.0.4; charset=utf-8"};
    };
    PENSTOCK_TRY_IN("--metrics-listen", auto server,
                    http::Server::start(address, {{"/metrics", http::heavy(std::move(page))}}));
    return std::unique_ptr<Exporter>(new Exporter(std::move(server)));
}

}  // namespace penstock::metrics
