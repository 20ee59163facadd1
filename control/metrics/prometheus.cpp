#include "control/metrics/prometheus.hpp"

#include <prometheus/client_metric.h>
#include <prometheus/text_serializer.h>

#include <utility>

namespace penstock::metrics {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using Labels = std::vector<ClientMetric::Label>;

void add(MetricFamily& family, Labels labels, double value) {
    ClientMetric& metric = family.metric.emplace_back();
    metric.label = std::move(labels);
    (family.type == MetricType::Gauge ? metric.gauge.value : metric.counter.value) = value;
}

MetricFamily family_of(MetricType type, std::string name, std::string help) {
    return {std::move(name), std::move(help), type, {}};
}
MetricFamily gauge(std::string name, std::string help) {
    return family_of(MetricType::Gauge, std::move(name), std::move(help));
}
MetricFamily counter(std::string name, std::string help) {
    return family_of(MetricType::Counter, std::move(name), std::move(help));
}

MetricFamily single(MetricFamily family, double value, Labels labels = {}) {
    add(family, std::move(labels), value);
    return family;
}

// A level is in the list beside the counts, and must not be called a counter.
bool is_level(stats::Counter which) {
    return which == stats::Counter::Connections;
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
    MetricFamily capacity = gauge("penstock_connections_max", "connections that fit");
    MetricFamily open =
        gauge("penstock_open_connections", "connections that are not over: the others rest, as in TIME-WAIT");
    MetricFamily drops = counter("penstock_drops_total", "packets dropped, by reason");
    for (size_t worker = 0; worker < reading.workers.size(); ++worker) {
        const std::string number = std::to_string(worker);
        add(capacity, {{"worker", number}}, static_cast<double>(reading.workers[worker].connections_max));
        add(open, {{"worker", number}}, static_cast<double>(reading.workers[worker].open_connections));
        for (size_t i = 0; i < kDropReasons; ++i) {
            add(drops, {{"reason", std::string(kDropReasonTexts[i].counter)}, {"worker", number}},
                static_cast<double>(reading.workers[worker].drops[i]));
        }
    }
    MetricFamily busy = counter("penstock_worker_busy_seconds_total",
                                "time spent in rounds that found something; its rate is the load");
    MetricFamily asleep = counter("penstock_worker_asleep_seconds_total", "time slept");
    for (size_t worker = 0; worker < reading.workers.size(); ++worker) {
        add(busy, {{"worker", std::to_string(worker)}}, reading.workers[worker].busy_s);
        add(asleep, {{"worker", std::to_string(worker)}}, reading.workers[worker].asleep_s);
    }
    out.push_back(std::move(busy));
    out.push_back(std::move(asleep));
    out.push_back(std::move(capacity));
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
    {"penstock_service_new_flows_total", "flows opened", MetricType::Counter, &ServiceReading::new_flows},
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
    {"penstock_service_dropped_total", "new flows refused in silence", MetricType::Counter,
     &ServiceReading::dropped},
    {"penstock_service_connections", "connections now", MetricType::Gauge, &ServiceReading::connections},
    {"penstock_service_backends", "backends that new flows from outside may get", MetricType::Gauge,
     &ServiceReading::backends},
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

struct PortFamily {
    const char* name;
    const char* help;
    uint64_t PortReading::* value;
};

constexpr PortFamily kPortFamilies[] = {
    {"penstock_port_rx_packets_total", "packets that the NIC received", &PortReading::rx_packets},
    {"penstock_port_rx_bytes_total", "bytes that the NIC received", &PortReading::rx_bytes},
    {"penstock_port_tx_packets_total", "packets that the NIC sent", &PortReading::tx_packets},
    {"penstock_port_tx_bytes_total", "bytes that the NIC sent", &PortReading::tx_bytes},
    {"penstock_port_rx_missed_total", "packets that the NIC or the kernel dropped because no buffer was free",
     &PortReading::rx_missed},
    {"penstock_port_handed_off_total", "packets received here that another worker owned",
     &PortReading::handed_off},
    {"penstock_port_handoff_lost_total", "of these, dropped because the owner did not take them",
     &PortReading::handoff_lost},
    {"penstock_port_replies_misplaced_total",
     "replies that the NIC should have brought to their owner and did not", &PortReading::replies_misplaced},
    {"penstock_port_punted_total", "packets that Linux took from the twin", &PortReading::punted},
    {"penstock_port_from_host_total", "packets of Linux that the workers took from the twin",
     &PortReading::from_host},
    {"penstock_port_from_host_dropped_total",
     "packets of Linux that a worker did not take as fast as they came", &PortReading::from_host_dropped},
    {"penstock_port_from_host_waits_total",
     "times that packets of Linux waited in the twin because no packet buffer was free",
     &PortReading::from_host_waits},
    {"penstock_port_twin_dropped_total", "packets that Linux dropped because the twin's queue was full",
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
    MetricFamily link = gauge("penstock_port_link_up", "1 where the NIC has link");
    for (const auto& port : reading.ports) {
        add(link, {{"twin", port.twin}}, port.link_up ? 1 : 0);
    }
    out.push_back(std::move(link));
}

void snat_families(const Reading& reading, std::vector<MetricFamily>& out) {
    MetricFamily ports = gauge("penstock_snat_ports", "SNAT ports that may be taken towards each endpoint");
    MetricFamily in_use = gauge("penstock_snat_ports_in_use", "SNAT ports taken, towards all endpoints");
    MetricFamily busiest = gauge("penstock_snat_ports_in_use_busiest_endpoint",
                                 "of these, the ones towards the endpoint (address and port) with the most");
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
    MetricFamily in_use =
        gauge("penstock_packet_buffers_in_use", "of these, the ones in queues, rings and hands");
    for (const BufferPoolReading& pool : reading.buffer_pools) {
        add(buffers, {{"pool", pool.name}}, static_cast<double>(pool.buffers));
        add(in_use, {{"pool", pool.name}}, static_cast<double>(pool.in_use));
    }
    out.push_back(std::move(buffers));
    out.push_back(std::move(in_use));
}

void probe_families(const ProbeReading& probes, std::vector<MetricFamily>& out) {
    const auto add_single = [&out](MetricFamily family, uint64_t value) {
        out.push_back(single(std::move(family), static_cast<double>(value)));
    };
    add_single(counter("penstock_probes_sent_total", "probes sent to endpoints"), probes.sent);
    add_single(counter("penstock_probes_succeeded_total", "probes that were answered well"),
               probes.succeeded);
    add_single(counter("penstock_probes_failed_total", "probes that were answered badly, or not in time"),
               probes.failed);
    add_single(counter("penstock_endpoints_turned_up_total",
                       "times that probes found an endpoint up that was not before"),
               probes.turned_up);
    add_single(counter("penstock_endpoints_turned_down_total",
                       "times that probes found an endpoint down that was not before"),
               probes.turned_down);
    add_single(gauge("penstock_probe_targets", "places that are probed"), probes.targets);
    add_single(gauge("penstock_probe_targets_down", "of those, the ones that are down"), probes.down);
    add_single(gauge("penstock_services_failing_open",
                     "service ports that use endpoints although probes find all of them down"),
               probes.failing_open);
}

}  // namespace

std::vector<MetricFamily> families(const Reading& reading) {
    std::vector<MetricFamily> out;
    out.push_back(single(gauge("penstock_build_info", "always 1; the version is a label"), 1,
                         {{"version", reading.version}}));
    out.push_back(single(gauge("penstock_start_time_seconds", "when penstockd started, since 1970"),
                         reading.started_s));
    out.push_back(single(gauge("penstock_control_connected", "1 while a state stream is open"),
                         reading.control_connected ? 1 : 0));
    out.push_back(single(
        gauge("penstock_applied_version", "version of the state in force, as its control plane counts"),
        static_cast<double>(reading.applied_version)));
    out.push_back(
        single(counter("penstock_snapshots_published_total", "configurations that workers have taken over"),
               static_cast<double>(reading.generation)));
    out.push_back(single(gauge("penstock_services", "service ports in force"),
                         static_cast<double>(reading.services.size())));
    out.push_back(single(gauge("penstock_affinity_entries",
                               "clients that session affinity remembers; some may have expired just now"),
                         static_cast<double>(reading.affinity_entries)));
    out.push_back(single(gauge("penstock_affinity_entries_max", "clients that session affinity has room for"),
                         static_cast<double>(reading.affinity_entries_max)));
    worker_families(reading, out);
    service_families(reading, out);
    port_families(reading, out);
    snat_families(reading, out);
    buffer_families(reading, out);
    probe_families(reading.probes, out);
    out.push_back(
        single(gauge("penstock_drained", "1 while health checks answer 503 because somebody asked for it"),
               reading.drained ? 1 : 0));
    out.push_back(
        single(gauge("penstock_vips_withheld", "1 while the gateway's Node keeps all VIPs off the link"),
               reading.vips_withheld ? 1 : 0));
    out.push_back(
        single(gauge("penstock_ready", "1 while health checks answer 200"), reading.is_well ? 1 : 0));
    MetricFamily stalled = gauge("penstock_loop_stalled", "1 while a thread makes no round of its loop");
    for (const LoopReading& loop : reading.loops) {
        add(stalled, {{"loop", loop.name}}, loop.is_stalled ? 1 : 0);
    }
    out.push_back(std::move(stalled));
    if (reading.tls) {
        out.push_back(single(gauge("penstock_tls_certificate_expiry_timestamp_seconds",
                                   "when the gateway's certificate expires"),
                             reading.tls->certificate_expires_s));
        out.push_back(single(gauge("penstock_tls_authority_expiry_timestamp_seconds",
                                   "when the last authority of clients expires"),
                             reading.tls->authority_expires_s));
        out.push_back(single(
            gauge("penstock_tls_files_broken", "1 while the TLS files cannot be used and former ones are"),
            reading.tls->broken ? 1 : 0));
    }
    if (reading.connections) {
        out.push_back(
            single(gauge("penstock_rpc_connections", "TCP connections of gRPC clients that are open"),
                   static_cast<double>(reading.connections->open)));
        out.push_back(
            single(gauge("penstock_rpc_connections_max", "TCP connections of gRPC clients that may be open"),
                   static_cast<double>(reading.connections->max)));
        MetricFamily refused = counter("penstock_rpc_connections_refused_total",
                                       "TCP connections of gRPC clients refused, by rule");
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
    return out;
}

Result<std::unique_ptr<Exporter>> Exporter::start(const std::string& address, std::function<Reading()> read) {
    auto page = [read = std::move(read)] {
        return http::Response{.body = prometheus::TextSerializer().Serialize(families(read())),
                              .content_type = "text/plain; version=0.0.4; charset=utf-8"};
    };
    auto server = http::Server::start(address, {{"/metrics", http::heavy(std::move(page))}});
    if (!server) {
        return in_context("--metrics-listen", std::move(server.error()));
    }
    return std::unique_ptr<Exporter>(new Exporter(std::move(*server)));
}

}  // namespace penstock::metrics
