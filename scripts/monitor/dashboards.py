# SPDX-License-Identifier: Apache-2.0
"""The four dashboards, as tables: rows of panels, a panel's expressions with the legend of each."""
import dataclasses

PACKETS, BITS, PERCENT, COUNT, SECONDS, FLOWS, TIME = "pps", "bps", "percentunit", "short", "s", "cps", "dateTimeFromNow"


@dataclasses.dataclass
class Panel:
    title: str
    unit: str
    queries: dict  # expression -> legend
    kind: str = "timeseries"  # or "stat", "table"
    empty: str = ""  # reason why it has no rows in suite observe


@dataclasses.dataclass
class Dashboard:
    uid: str
    title: str
    variables: dict  # name -> (metric, label)
    rows: dict       # title -> panels


INSTANCE = {"instance": ("penstock_build_info", "instance")}
AT = 'instance=~"$instance"'
OF = 'namespace=~"$namespace",service=~"$service"'


def rate(metric, where, *labels):
    summed = f" by ({', '.join(labels)})" if labels else ""
    return f"sum{summed} (rate({metric}{{{where}}}[$__rate_interval]))"


def at_gateway(title, unit, metric, label="worker", **more):
    return Panel(title, unit, {rate(metric, AT, label): f"{{{{{label}}}}}"}, **more)


def quantile(of, metric, *labels):
    return f"histogram_quantile({of}, {rate(metric + '_bucket', OF, *labels, 'le')})"


def quantiles(title, metric, label):
    return Panel(title, SECONDS, {quantile(of, metric, label): f"{{{{{label}}}}} {of:.0%}" for of in (0.5, 0.99)})


OVERVIEW = Dashboard("penstock-overview", "Penstock / Overview", INSTANCE, {
    "State": [
        Panel("Gateways ready", COUNT, {f"sum(penstock_ready{{{AT}}})": "ready"}, "stat"),
        Panel("Gateways drained", COUNT, {f"sum(penstock_drained{{{AT}}})": "drained"}, "stat"),
        Panel("Gateways with a control plane", COUNT, {f"sum(penstock_control_connected{{{AT}}})": "connected"}, "stat"),
        Panel("Connections", COUNT, {f"sum(penstock_open_connections{{{AT}}})": "open"}, "stat"),
        Panel("Versions", COUNT, {f"count by (version) (penstock_build_info{{{AT}}})": "{{version}}"}, "stat"),
        Panel("Start", TIME, {f"1000 * penstock_start_time_seconds{{{AT}}}": "{{instance}}"}, "stat")],
    "Traffic": [
        Panel("Packets received", PACKETS, {rate("penstock_rx_packets_total", AT, "instance"): "{{instance}}"}),
        Panel("Bits received", BITS, {"8 * " + rate("penstock_rx_bytes_total", AT, "instance"): "{{instance}}"}),
        Panel("New connections", FLOWS, {rate("penstock_new_connections_total", AT, "instance"): "{{instance}}"}),
        Panel("Drops by reason", PACKETS, {f"topk(10, {rate('penstock_drops_total', AT, 'reason')})": "{{reason}}"})],
    "Utilisation": [
        Panel("Busiest worker", PERCENT,
              {f"max by (instance) (rate(penstock_worker_busy_seconds_total{{{AT}}}[$__rate_interval]))": "{{instance}}"}),
        Panel("Connection tables", PERCENT, {f"max by (instance) (penstock_connections{{{AT}}} / penstock_connections_max{{{AT}}})": "{{instance}}"}),
        Panel("SNAT ports towards the busiest endpoint", PERCENT,
              {f"max by (instance) (penstock_snat_ports_in_use_busiest_endpoint{{{AT}}} / penstock_snat_ports{{{AT}}})": "{{instance}}"}),
        Panel("Packet buffers", PERCENT,
              {f"max by (instance) (penstock_packet_buffers_in_use{{{AT}}} / penstock_packet_buffers{{{AT}}})": "{{instance}}"})],
})

SERVICE = Dashboard("penstock-service", "Penstock / Service",
                    {"namespace": ("penstock_service_backends", "namespace"), "service": ('penstock_service_backends{namespace=~"$namespace"}', "service")}, {
    "Service": [
        Panel("Backends for new flows", COUNT, {f"min by (namespace, service, port) (penstock_service_backends{{{OF}}})": "{{service}} {{port}}"}),
        Panel("Connections", COUNT, {f"sum by (namespace, service, port) (penstock_service_connections{{{OF}}})": "{{service}} {{port}}"}),
        Panel("New flows", FLOWS, {rate("penstock_service_new_flows_total", OF, "namespace", "service", "port"): "{{service}} {{port}}"}),
        Panel("New flows rejected or dropped", FLOWS,
              {rate("penstock_service_rejected_total", OF, "namespace", "service", "port"): "{{service}} {{port}} rejected",
               rate("penstock_service_dropped_total", OF, "namespace", "service", "port"): "{{service}} {{port}} dropped"})],
    "Traffic": [
        Panel("Packets", PACKETS, {rate("penstock_service_forward_packets_total", OF, "service"): "{{service}} from clients",
                                   rate("penstock_service_reverse_packets_total", OF, "service"): "{{service}} to clients"}),
        Panel("Bits", BITS, {"8 * " + rate("penstock_service_forward_bytes_total", OF, "service"): "{{service}} from clients",
                             "8 * " + rate("penstock_service_reverse_bytes_total", OF, "service"): "{{service}} to clients"}),
        Panel("New flows by gateway", FLOWS, {rate("penstock_service_new_flows_total", OF, "instance"): "{{instance}}"})],
    "Latency (--latency-histograms)": [
        quantiles("Connect time", "penstock_service_connect_seconds", "service"),
        quantiles("First-byte time", "penstock_service_first_byte_seconds", "service"),
        Panel("First-byte time by backend (99 %)", SECONDS,
              {quantile(0.99, "penstock_backend_first_byte_seconds", "service", "backend"): "{{service}} {{backend}}"})],
    "Backends (--metrics-backends)": [
        Panel("New flows", FLOWS, {rate("penstock_backend_new_flows_total", OF, "service", "backend"): "{{service}} {{backend}}"}),
        Panel("Open connections", COUNT, {f"sum by (service, backend) (penstock_backend_open_connections{{{OF}}})": "{{service}} {{backend}}"})],
})

GATEWAY = Dashboard("penstock-gateway", "Penstock / Gateway", INSTANCE, {
    "Workers": [
        Panel("Busy", PERCENT, {f"rate(penstock_worker_busy_seconds_total{{{AT}}}[$__rate_interval])": "{{worker}}"}),
        Panel("Asleep", PERCENT, {f"rate(penstock_worker_asleep_seconds_total{{{AT}}}[$__rate_interval])": "{{worker}}"}),
        at_gateway("Packets received", PACKETS, "penstock_rx_packets_total"),
        at_gateway("Packets handed off", PACKETS, "penstock_handed_off_total"),
        Panel("Stalled loops", COUNT, {f"penstock_loop_stalled{{{AT}}}": "{{loop}}"})],
    "Connections": [
        Panel("Connections", COUNT, {f"sum by (worker) (penstock_connections{{{AT}}})": "worker {{worker}}",
                                     f"sum by (worker) (penstock_open_connections{{{AT}}})": "worker {{worker}} open"}),
        at_gateway("New connections", FLOWS, "penstock_new_connections_total"),
        at_gateway("Closed connections", FLOWS, "penstock_closed_connections_total"),
        at_gateway("Evicted connections", FLOWS, "penstock_evicted_connections_total"),
        at_gateway("Rejected", PACKETS, "penstock_rejected_total"),
        Panel("Session affinity entries", PERCENT, {f"penstock_affinity_entries{{{AT}}} / penstock_affinity_entries_max{{{AT}}}": "{{instance}}"})],
    "SNAT and buffers": [
        Panel("SNAT ports in use", COUNT, {f"penstock_snat_ports_in_use{{{AT}}}": "{{address}} {{protocol}}"}),
        Panel("SNAT ports towards the busiest endpoint", PERCENT,
              {f"penstock_snat_ports_in_use_busiest_endpoint{{{AT}}} / penstock_snat_ports{{{AT}}}": "{{address}} {{protocol}}"}),
        at_gateway("SNAT ports reclaimed", FLOWS, "penstock_reclaimed_snat_ports_total"),
        Panel("Packet buffers in use", PERCENT, {f"penstock_packet_buffers_in_use{{{AT}}} / penstock_packet_buffers{{{AT}}}": "{{pool}}"})],
    "Ports": [
        Panel("Link", COUNT, {f"penstock_port_link_up{{{AT}}}": "{{twin}}"}),
        at_gateway("Packets received", PACKETS, "penstock_port_rx_packets_total", "twin"),
        at_gateway("Packets sent", PACKETS, "penstock_port_tx_packets_total", "twin"),
        at_gateway("Frames missed on receive", PACKETS, "penstock_port_rx_missed_total", "twin"),
        at_gateway("Punted to Linux", PACKETS, "penstock_port_punted_total", "twin"),
        at_gateway("From Linux", PACKETS, "penstock_port_from_host_total", "twin"),
        at_gateway("Replies misplaced", PACKETS, "penstock_port_replies_misplaced_total", "twin"),
        at_gateway("Dropped in front of the twin", PACKETS, "penstock_port_twin_dropped_total", "twin")],
    "Drops and ICMP": [
        at_gateway("Drops by reason", PACKETS, "penstock_drops_total", "reason"),
        at_gateway("ICMP errors sent", PACKETS, "penstock_icmp_errors_sent_total"),
        at_gateway("Fragments forwarded", PACKETS, "penstock_fragments_forwarded_total"),
        at_gateway("Fragments held", PACKETS, "penstock_fragments_held_total"),
        Panel("Room for waiting fragments in use", PERCENT,
              {f"penstock_fragments_waiting{{{AT}}} / penstock_fragments_waiting_max{{{AT}}}": "worker {{worker}}"})],
    "Health and VIPs": [
        Panel("Ready", COUNT, {f"penstock_ready{{{AT}}}": "{{instance}}"}),
        Panel("VIPs by announcement", COUNT, {f"penstock_vips{{{AT}}}": "{{presence}} {{metric}}"}),
        Panel("Probed endpoints", COUNT, {f"penstock_probe_targets{{{AT}}}": "probed", f"penstock_probe_targets_down{{{AT}}}": "down"}),
        Panel("Certificate lifetime left", SECONDS, {f"penstock_tls_certificate_expiry_timestamp_seconds{{{AT}}} - time()": "{{instance}}"})],
    "State that outlives the process": [
        Panel("Connections adopted at the start", COUNT, {f"penstock_adopted_connections{{{AT}}}": "adopted",
                                                         f"sum by (reason) (penstock_adoption_lost{{{AT}}})": "lost: {{reason}}"}),
        Panel("State file failures", COUNT, {f"penstock_state_save_failing{{{AT}}}": "{{instance}}"})],
    "Flow records": [
        Panel("Flow records", FLOWS, {rate("penstock_flow_records_queued_total", AT, "instance"): "from workers",
                                      rate("penstock_flow_records_written_total", AT, "destination"): "to {{destination}}"}),
        Panel("Flow records lost", FLOWS, {rate("penstock_flow_records_lost_total", AT, "reason"): "{{reason}}"})],
})

SYNC = {"instance": ("penstock_sync_build_info", "instance")}
CONTROL = Dashboard("penstock-control-plane", "Penstock / Control plane", SYNC, {
    "Source": [
        Panel("Objects", COUNT, {f"penstock_sync_objects{{{AT}}}": "{{kind}}"}),
        Panel("Invalid objects", COUNT, {f"penstock_sync_quarantined_objects{{{AT}}}": "{{kind}}"}),
        Panel("Time since the store followed the source", SECONDS, {f"penstock_sync_stale_seconds{{{AT}}}": "{{kind}}"}),
        Panel("Errors", COUNT, {rate("penstock_sync_errors_total", AT, "kind", "error"): "{{kind}} {{error}}"}),
        Panel("Watches opened and lists repeated", COUNT, {rate("penstock_sync_watch_restarts_total", AT, "kind"): "{{kind}} watches",
                                                           rate("penstock_sync_relists_total", AT, "kind"): "{{kind}} lists"})],
    "Gateways": [
        Panel("Connected", COUNT, {f"penstock_sync_gateway_connected{{{AT}}}": "{{gateway}}"}),
        Panel("Age of the oldest change not applied", SECONDS, {f"penstock_sync_gateway_lag_seconds{{{AT}}}": "{{gateway}}"}),
        Panel("Time to apply a change (99 %)", SECONDS,
              {f"histogram_quantile(0.99, {rate('penstock_sync_apply_latency_seconds_bucket', AT, 'gateway', 'le')})": "{{gateway}}"}),
        Panel("Service ports", COUNT, {f"penstock_sync_gateway_services{{{AT}}}": "{{gateway}}",
                                       f"penstock_sync_gateway_refused_services{{{AT}}}": "{{gateway}} refused"}),
        Panel("States and deltas sent", COUNT, {rate("penstock_sync_full_states_total", AT, "gateway"): "{{gateway}} states",
                                                rate("penstock_sync_deltas_total", AT, "gateway"): "{{gateway}} deltas"})],
    "Addresses": [
        Panel("Addresses of pools", COUNT, {f"penstock_pool_addresses{{{AT}}}": "{{pool}} {{family}} {{state}}"}),
        Panel("Services without address", COUNT, {f"penstock_services_without_address{{{AT}}}": "{{reason}}"}),
        Panel("Leader", COUNT, {f"penstock_leader{{{AT}}}": "{{instance}}"}, empty="exists only with an API server"),
        Panel("Status writes", COUNT, {rate("penstock_status_writes_total", AT, "object", "result"): "{{object}} {{result}}"},
              empty="exists only with an API server")],
    "Process": [
        Panel("Resident memory", "bytes", {f"penstock_sync_resident_memory_bytes{{{AT}}}": "{{instance}}"}),
        Panel("Uptime", SECONDS, {f"penstock_sync_uptime_seconds{{{AT}}}": "{{instance}}"}),
        Panel("Events posted", COUNT, {rate("penstock_sync_events_posted_total", AT, "instance"): "{{instance}}"}),
        Panel("Certificate lifetime left", SECONDS, {f"penstock_sync_tls_certificate_expiry_timestamp_seconds{{{AT}}} - time()": "{{instance}}"})],
})

DASHBOARDS = (OVERVIEW, SERVICE, GATEWAY, CONTROL)
