# SPDX-License-Identifier: Apache-2.0
"""The alerts: an expression, the time for which it holds, severity and texts, and for the test the series that
make the alert fire and those that do not."""
import dataclasses
import re

from . import drops

GATEWAY_JOB, SYNC_JOB = "penstockd", "penstock-sync"


@dataclasses.dataclass
class Alert:
    name: str
    group: str       # of the rules; a section of docs/monitoring.md has its name
    severity: str    # critical: clients are affected, or soon will be. warning: act today. info: know
    of: str          # expression that has rows on a healthy gateway as well
    when: str        # comparison that no row of a healthy gateway meets
    hold: str        # `for` of the rule
    summary: str     # may contain {{ $labels.NAME }}
    action: str      # what to do; contains the next command
    fires: dict      # series -> values in promtool's notation, one a minute
    rests: dict
    guard: str = ""  # appended: `and on (instance) ...`
    empty: str = ""  # reason why `of` has no rows in suite observe
    labels: dict = dataclasses.field(default_factory=dict)  # of the alert that `fires` causes

    @property
    def expression(self):
        return f"{self.of} {self.when} {self.guard}".replace("  ", " ").strip()


GW = f'instance="gw",job="{GATEWAY_JOB}"'
SY = f'instance="sy",job="{SYNC_JOB}"'
ALERTS = []


def series(metric, labels):
    return f"{metric}{{{labels}}}"


def alert(name, group, severity, of, when, hold, summary, action, fires, rests, **more):
    ALERTS.append(Alert(f"Penstock{name}", group, severity, of, when, hold, summary, action, fires, rests, **more))


def on_gauge(name, group, severity, metric, when, hold, summary, action, bad, good, labels="", of=None, base=GW, **more):
    """An alert on one gauge: `bad` makes it fire, `good` does not."""
    one = series(metric, base + ("," + labels if labels else ""))
    alert(name, group, severity, of or metric, when, hold, summary, action, {one: f"{bad}x120"}, {one: f"{good}x120"}, **more)


def on_increase(name, group, severity, metric, window, limit, hold, summary, action, labels="", base=GW, step=600, of=None, **more):
    """An alert on the rate of a counter; `without` drops the label worker. In the test it rises by `step` a minute."""
    one = series(metric, base + ("," + labels if labels else ""))
    worker = "worker=" in labels
    of = of or (f"sum without (worker) (rate({metric}[{window}]))" if worker else f"rate({metric}[{window}])")
    alert(name, group, severity, of, f"> {limit}", hold, summary, action, {one: f"0+{step}x120"}, {one: "7+0x120"}, **more)


AT = "on {{ $labels.instance }}"
WORKER = 'worker="0"'

# Availability of a gateway.
on_gauge("GatewayDown", "availability", "critical", "up", "== 0", "1m", f"penstockd {AT} is not reachable",
         "See systemctl status penstockd and its log on the host. Connections continue if it starts again within their timeouts.",
         "0+0", "1+0", of=f'up{{job="{GATEWAY_JOB}"}}')
alert("NoGateway", "availability", "critical", f'absent(up{{job="{GATEWAY_JOB}"}})', "", "5m", "Prometheus scrapes no gateway",
      f"Check the scrape configuration of job {GATEWAY_JOB}, and --metrics-listen of penstockd.",
      {series("up", SY): "1+0x120"}, {series("up", GW): "1+0x120"}, empty="absent() has a row only while there is no gateway")
alert("GatewayNotReady", "availability", "critical", "penstock_ready", "== 0", "1m", f"The health checks {AT} answer 503",
      "penstockctl status lists the reasons.",
      {series("penstock_ready", GW): "0+0x120", series("penstock_drained", GW): "0+0x120"},
      {series("penstock_ready", GW): "0+0x120", series("penstock_drained", GW): "1+0x120"},
      guard="and on (instance) penstock_drained == 0")
on_gauge("GatewayDrained", "availability", "info", "penstock_drained", "== 1", "1h", f"The gateway {AT} has been drained for an hour",
         "penstockctl status shows the step of the drain; penstockctl undrain ends it.", "1+0", "0+0")
on_gauge("LoopStalled", "availability", "critical", "penstock_loop_stalled", "== 1", "30s", f"{{{{ $labels.loop }}}} {AT} makes no round",
         "penstockctl status and the log name the part of the round in which it stopped. A restart of penstockd resolves it.",
         "1+0", "0+0", 'loop="worker 0"')
# Not by the start time: resets of a counter have no error of the clock.
alert("GatewayRestarting", "availability", "warning", "max without (worker) (resets(penstock_polls_total[1h]))", "> 2", "0m",
      f"penstockd {AT} has restarted several times in an hour", "Read its log: journalctl -u penstockd. penstockctl status shows what it adopted.",
      {series("penstock_polls_total", f"{GW},{WORKER}"): "0+9x60 5+9x10 5+9x10 5+9x10 5+9x40"},
      {series("penstock_polls_total", f"{GW},{WORKER}"): "0+9x120"})
on_gauge("PortDown", "availability", "warning", "penstock_port_link_up", "== 0", "1m", f"The link of port {{{{ $labels.twin }}}} {AT} is down",
         "penstockctl get ports shows the port; check cable, switch and driver.", "0+0", "1+0", 'twin="uplink0"')
alert("VersionsDiffer", "availability", "info", "count by (job) (count by (job, version) (penstock_build_info))", "> 1", "6h",
      "Gateways run different versions", "Finish the rollout. penstockctl version prints the version of one gateway.",
      {series("penstock_build_info", GW + ',version="1"'): "1+0x600", series("penstock_build_info", GW.replace("gw", "gw2") + ',version="2"'): "1+0x600"},
      {series("penstock_build_info", GW + ',version="1"'): "1+0x600"})

# State that outlives the process.
on_gauge("StateSaveFailing", "state", "warning", "penstock_state_save_failing", "== 1", "5m",
         f"The newest configuration {AT} is not in the state file", "penstockctl status has the reason. A restart would begin with an older configuration.",
         "1+0", "0+0")
on_gauge("TablesNotKept", "state", "info", "penstock_tables_kept", "== 0", "10m", f"Connections {AT} end with penstockd",
         "penstockctl status, line Tables, has the reason. Silence this alert if --table-dir off is intended.", "0+0", "1+0")
on_increase("TableNamesFailing", "state", "warning", "penstock_table_name_failures_total", "10m", 0, "0m",
            f"Names of Services or endpoints {AT} cannot be written to the table file",
            "Check the space of the file system of --table-dir. penstockctl status has the reason.")
alert("ConnectionsNotAdopted", "state", "warning", "sum without (reason) (penstock_adoption_lost)", "> 100", "0m",
      f"Connections of the former penstockd {AT} did not continue", "penstockctl status has the numbers by reason.",
      {series("penstock_adoption_lost", GW + ',reason="no room"'): "500+0x120", series("penstock_start_time_seconds", GW): "0+0x120"},
      {series("penstock_adoption_lost", GW + ',reason="no room"'): "0+0x120", series("penstock_start_time_seconds", GW): "0+0x120"},
      guard="and on (instance) time() - penstock_start_time_seconds < 3600")

# Configuration and VIPs of a gateway.
on_gauge("ControlPlaneLost", "configuration", "warning", "penstock_control_connected", "== 0", "5m",
         f"The gateway {AT} has no control plane", "It forwards by its last configuration. penstockctl get sync and the log of penstock-sync have the reason.",
         "0+0", "1+0")
alert("LastGoodInForce", "configuration", "warning", "penstock_last_good_in_force", "== 1", "15m",
      f"The gateway {AT} still uses the configuration of before its start", "No control plane has sent a state since then: penstockctl get sync and the log of penstock-sync.",
      {series("penstock_last_good_in_force", GW): "1+0x120"}, {series("penstock_last_good_in_force", GW): "0+0x120"})
on_gauge("VipsWithheld", "configuration", "warning", "penstock_vips_withheld", "== 1", "10m", f"The state of its Node withholds the VIPs {AT}",
         "penstockctl status has the reason.", "1+0", "0+0")
on_gauge("SharesPlanFault", "configuration", "warning", "penstock_shares_plan_fault", "== 1", "10m", f"The plan of shares {AT} is not in force or not saved",
         "The line Shares of penstockctl status has the reason. The gateway continues with the plan of before.", "1+0", "0+0")
on_gauge("ShareCopiesIncomplete", "configuration", "warning", "penstock_share_copies_complete", "== 0", "5m",
         f"The gateway {AT} lacks copies of connections of {{{{ $labels.gateway }}}}",
         "penstockctl get gateways has the state and the last error of the copies. If that gateway is lost now, its connections are.", "0+0", "1+0",
         'gateway="edge-2"')
on_gauge("SharesAwaitFailBack", "configuration", "warning", "penstock_shares_awaiting_fail_back", "> 0", "1h",
         f"Shares {AT} are served by their heirs", "The gateway has the connections of the heirs: penstockctl fail-back returns the shares to it.", "1+0", "0+0")
alert("VipsNotAnnounced", "configuration", "warning", 'penstock_vips{presence="none"}', "> 0", "15m", f"VIPs {AT} are not announced",
      "penstockctl get vips has the reason of each.",
      {series("penstock_vips", GW + ',presence="none",metric=""'): "3+0x120", series("penstock_drained", GW): "0+0x120",
       series("penstock_vips_withheld", GW): "0+0x120"},
      {series("penstock_vips", GW + ',presence="none",metric=""'): "3+0x120", series("penstock_drained", GW): "1+0x120",
       series("penstock_vips_withheld", GW): "0+0x120"},
      guard="unless on (instance) (penstock_drained == 1 or penstock_vips_withheld == 1)")
on_gauge("VipForeignRoutes", "configuration", "warning", "penstock_vip_foreign_routes", "> 0", "5m",
         f"Another program {AT} has routes for VIPs", "penstockctl get vips marks the VIPs; ip route show table main has the routes.", "2+0", "0+0")

# Load and capacity.
def busy(step):
    return {series("penstock_worker_busy_seconds_total", f"{GW},{WORKER}"): f"0+{step}x120"}


alert("WorkerBusy", "capacity", "warning", "rate(penstock_worker_busy_seconds_total[5m])", "> 0.85", "10m",
      f"Worker {{{{ $labels.worker }}}} {AT} has less than 15 % reserve", "penstockctl get workers; add worker cores or gateways.", busy(54), busy(30))
alert("WorkerSaturated", "capacity", "critical", "rate(penstock_worker_busy_seconds_total[5m])", "> 0.97", "5m",
      f"Worker {{{{ $labels.worker }}}} {AT} is saturated", "penstockctl get workers; add worker cores or gateways.", busy(59.5), busy(54))
alert("ConnectionTableFilling", "capacity", "warning", "penstock_connections / penstock_connections_max", "> 0.8", "10m",
      f"The connection table of worker {{{{ $labels.worker }}}} {AT} is over 80 % full", "penstockctl get connections; add workers or gateways.",
      {series("penstock_connections", f"{GW},{WORKER}"): "900+0x120", series("penstock_connections_max", f"{GW},{WORKER}"): "1000+0x120"},
      {series("penstock_connections", f"{GW},{WORKER}"): "500+0x120", series("penstock_connections_max", f"{GW},{WORKER}"): "1000+0x120"})
alert("ConnectionTableFull", "capacity", "critical", "penstock_connections / penstock_connections_max", "> 0.95", "2m",
      f"The connection table of worker {{{{ $labels.worker }}}} {AT} is over 95 % full", "penstockctl get connections; drain the gateway or add gateways.",
      {series("penstock_connections", f"{GW},{WORKER}"): "960+0x120", series("penstock_connections_max", f"{GW},{WORKER}"): "1000+0x120"},
      {series("penstock_connections", f"{GW},{WORKER}"): "940+0x120", series("penstock_connections_max", f"{GW},{WORKER}"): "1000+0x120"})
on_increase("ConnectionsEvicted", "capacity", "warning", "penstock_evicted_connections_total", "5m", 1, "10m", f"A full connection table evicts connections {AT}",
            "penstockctl get connections shows whether it is a flood; add workers or gateways otherwise.", WORKER)
SNAT = GW + ',address="10.0.0.1",protocol="TCP"'
alert("SnatPortsFilling", "capacity", "warning", "penstock_snat_ports_in_use_busiest_endpoint / penstock_snat_ports", "> 0.8", "10m",
      f"SNAT ports of {{{{ $labels.address }}}} {AT} towards one endpoint are over 80 % in use",
      "penstockctl get backends shows the busiest endpoint; add SNAT addresses or endpoints.",
      {series("penstock_snat_ports_in_use_busiest_endpoint", SNAT): "900+0x120", series("penstock_snat_ports", SNAT): "1000+0x120"},
      {series("penstock_snat_ports_in_use_busiest_endpoint", SNAT): "500+0x120", series("penstock_snat_ports", SNAT): "1000+0x120"})
alert("SnatPortsExhausted", "capacity", "critical", "penstock_snat_ports_in_use_busiest_endpoint / penstock_snat_ports", "> 0.95", "2m",
      f"SNAT ports of {{{{ $labels.address }}}} {AT} towards one endpoint are over 95 % in use",
      "penstockctl get backends shows the busiest endpoint; add SNAT addresses or endpoints now.",
      {series("penstock_snat_ports_in_use_busiest_endpoint", SNAT): "960+0x120", series("penstock_snat_ports", SNAT): "1000+0x120"},
      {series("penstock_snat_ports_in_use_busiest_endpoint", SNAT): "940+0x120", series("penstock_snat_ports", SNAT): "1000+0x120"})
on_increase("SnatPortsReclaimed", "capacity", "info", "penstock_reclaimed_snat_ports_total", "5m", 1, "10m",
            f"New flows {AT} take the SNAT ports of ended connections", "penstockctl get backends; add SNAT addresses or endpoints.", WORKER)
POOL = GW + ',pool="penstock_mbufs_0"'
alert("PacketBuffersLow", "capacity", "warning", "penstock_packet_buffers_in_use / penstock_packet_buffers", "> 0.9", "5m",
      f"Pool {{{{ $labels.pool }}}} {AT} has less than 10 % of its packet buffers left", "penstockctl stats (no_buffer); raise --memory-mb.",
      {series("penstock_packet_buffers_in_use", POOL): "950+0x120", series("penstock_packet_buffers", POOL): "1000+0x120"},
      {series("penstock_packet_buffers_in_use", POOL): "500+0x120", series("penstock_packet_buffers", POOL): "1000+0x120"})
alert("PacketBuffersExhausted", "capacity", "critical", "penstock_packet_buffers_in_use / penstock_packet_buffers", "> 0.95", "2m",
      f"Pool {{{{ $labels.pool }}}} {AT} has less than 5 % of its packet buffers left", "penstockctl stats (no_buffer); raise --memory-mb or add gateways.",
      {series("penstock_packet_buffers_in_use", POOL): "960+0x120", series("penstock_packet_buffers", POOL): "1000+0x120"},
      {series("penstock_packet_buffers_in_use", POOL): "940+0x120", series("penstock_packet_buffers", POOL): "1000+0x120"})
alert("FragmentSlotsFull", "capacity", "warning", "penstock_fragments_waiting / penstock_fragments_waiting_max", "> 0.95", "1m",
      f"Worker {{{{ $labels.worker }}}} {AT} has no room for fragments that wait", "penstockctl stats (fragments_full, fragment_expired): a flood of later fragments.",
      {series("penstock_fragments_waiting", f"{GW},{WORKER}"): "500+0x120", series("penstock_fragments_waiting_max", f"{GW},{WORKER}"): "512+0x120"},
      {series("penstock_fragments_waiting", f"{GW},{WORKER}"): "100+0x120", series("penstock_fragments_waiting_max", f"{GW},{WORKER}"): "512+0x120"})
on_gauge("BackendsWithoutSeries", "services", "info", "penstock_backends_without_series", "> 0", "15m",
         f"Backends {AT} have no series of their own", "Raise --metrics-backends of penstockd.", "5+0", "0+0")
on_increase("AffinityEvictions", "capacity", "info", "penstock_affinity_evictions_total", "5m", 1, "15m", f"Session affinity entries {AT} are evicted",
            "penstockctl get affinity; without a flood of new sources raise --affinity-entries.", WORKER)
on_increase("ReceiveMissed", "capacity", "warning", "penstock_port_rx_missed_total", "5m", 1, "5m", f"Port {{{{ $labels.twin }}}} {AT} drops frames on receive",
            "penstockctl get ports and get workers: the workers do not read fast enough.", 'twin="uplink0"')
on_increase("TwinDropped", "capacity", "warning", "penstock_port_twin_dropped_total", "5m", 10, "10m",
            f"Linux drops packets in front of twin {{{{ $labels.twin }}}} {AT}", "penstockctl get ports; the host sends more than the twin carries.", 'twin="uplink0"', step=1200)
on_increase("RpcConnectionsRefused", "capacity", "warning", "penstock_rpc_connections_refused_total", "10m", 0, "10m",
            f"gRPC connections {AT} are refused by rule {{{{ $labels.rule }}}}", "The log names the source. Restrict the port with a firewall.", 'rule="source"')

# Services and endpoints.
ONE = 'namespace="default",service="web",port="http",protocol="TCP"'
alert("ServiceWithoutBackends", "services", "warning", "penstock_service_backends", "== 0", "5m",
      "Clients of {{ $labels.namespace }}/{{ $labels.service }} find no backend", "penstockctl describe service NAMESPACE/NAME has the reason.",
      {series("penstock_service_backends", f"{GW},{ONE}"): "0+0x120", series("penstock_service_rejected_total", f"{GW},{ONE}"): "0+60x120",
       series("penstock_service_dropped_total", f"{GW},{ONE}"): "0+0x120"},
      {series("penstock_service_backends", f"{GW},{ONE}"): "0+0x120", series("penstock_service_rejected_total", f"{GW},{ONE}"): "0+0x120",
       series("penstock_service_dropped_total", f"{GW},{ONE}"): "0+0x120"},
      guard="and (rate(penstock_service_rejected_total[5m]) + rate(penstock_service_dropped_total[5m])) > 0")
on_increase("ServiceRejecting", "services", "warning", "penstock_service_rejected_total", "5m", 10, "10m",
            "New flows of {{ $labels.namespace }}/{{ $labels.service }} are rejected", "penstockctl describe service NAMESPACE/NAME; penstockctl explain.", ONE, step=1200)
on_increase("ServiceDropping", "services", "warning", "penstock_service_dropped_total", "5m", 10, "10m",
            "New flows of {{ $labels.namespace }}/{{ $labels.service }} are dropped", "penstockctl stats has the reason; penstockctl explain shows the rule.", ONE, step=1200)
on_gauge("ServicesFailingOpen", "services", "warning", "penstock_services_failing_open", "> 0", "5m",
         f"Services {AT} use endpoints although probes report all of them down", "penstockctl get backends, column HEALTH.", "1+0", "0+0")
alert("EndpointsDown", "services", "warning", "penstock_probe_targets_down / penstock_probe_targets", "> 0.5", "5m",
      f"More than half of the probed endpoints {AT} are down", "penstockctl get backends, column HEALTH; check network policies for probes.",
      {series("penstock_probe_targets_down", GW): "8+0x120", series("penstock_probe_targets", GW): "10+0x120"},
      {series("penstock_probe_targets_down", GW): "1+0x120", series("penstock_probe_targets", GW): "10+0x120"})
on_increase("EndpointsFlapping", "services", "info", "penstock_endpoints_turned_down_total", "15m", 0.05, "15m", f"Probed endpoints {AT} turn up and down",
            "penstockctl get backends --watch, column HEALTH.")

on_increase("FlowRecordsLost", "flow-records", "warning", "penstock_flow_records_lost_total", "5m", 0, "5m",
            f"Flow records {AT} are lost: {{{{ $labels.reason }}}}", "penstockctl status, line Flow records, and docs/flow-records.md have the cause.",
            'reason="queue"')

# Certificates of both programs.
for program, prefix, base in (("penstockd", "penstock_tls", GW), ("penstock-sync", "penstock_sync_tls", SY)):
    title, end = "" if program == "penstockd" else "Sync", f"{prefix}_certificate_expiry_timestamp_seconds"
    for part, severity, days in (("Expiring", "warning", 7), ("Expired", "critical", 1)):
        alert(f"{title}Certificate{part}", "certificates", severity, f"{end} - time()", f"< {days} * 86400", "10m",
              f"The certificate of {program} {AT} expires soon", "Renew the file of --tls-cert; no restart is needed. penstockctl status shows the result.",
              {series(end, base): f"{86400 * days}+0x120"}, {series(end, base): f"{86400 * (days + 1)}+0x120"})
    on_gauge(f"{title}TlsFilesBroken", "certificates", "warning", f"{prefix}_files_broken", "== 1", "5m", f"The TLS files of {program} {AT} are invalid",
             "The previous ones stay in use. The log has option, file and mistake.", "1+0", "0+0", base=base)

# penstock-sync.
on_gauge("SyncDown", "penstock-sync", "warning", "up", "== 0", "5m", f"penstock-sync {AT} is not reachable",
         "See its log. Gateways forward by their last configuration.", "0+0", "1+0", of=f'up{{job="{SYNC_JOB}"}}', base=SY)
KIND, TO = 'kind="services"', 'gateway="unix:/run/p.sock"'
on_gauge("SyncStale", "penstock-sync", "warning", "penstock_sync_stale_seconds", "> 180", "1m", f"penstock-sync {AT} does not follow {{{{ $labels.kind }}}}",
         "penstockctl get sync has the error. Gateways forward by the last known state.", "600+0", "0+0", KIND, base=SY)
on_gauge("SyncNotListed", "penstock-sync", "warning", "penstock_sync_listed", "== 0", "10m", f"penstock-sync {AT} has not listed {{{{ $labels.kind }}}}",
         "penstockctl get sync has the error.", "0+0", "1+0", KIND, base=SY, of='penstock_sync_listed{kind=~"services|endpoints|endpointslices|nodes"}')
on_gauge("SyncLoopStalled", "penstock-sync", "critical", "penstock_sync_heartbeat_age_seconds", "> 60", "1m", f"The loop of penstock-sync {AT} makes no round",
         "See its log, then restart it: gateways keep their configuration.", "120+0", "1+0", base=SY)
on_gauge("SyncQuarantined", "penstock-sync", "warning", "penstock_sync_quarantined_objects", "> 0", "5m",
         "Invalid objects of kind {{ $labels.kind }} are ignored", "penstockctl get sync; the log of penstock-sync names each object and rule.", "2+0", "0+0", KIND, base=SY)
on_increase("SyncErrors", "penstock-sync", "warning", "penstock_sync_errors_total", "10m", 0.1, "15m",
            "Requests of penstock-sync for {{ $labels.kind }} fail: {{ $labels.error }}", "penstockctl get sync has the last error.", KIND + ',error="connect"', base=SY)
on_gauge("SyncGatewayDisconnected", "penstock-sync", "warning", "penstock_sync_gateway_connected", "== 0", "5m",
         "penstock-sync does not reach {{ $labels.gateway }}", "penstockctl get sync has the error.", "0+0", "1+0", TO, base=SY)
on_gauge("SyncGatewayLag", "penstock-sync", "warning", "penstock_sync_gateway_lag_seconds", "> 10", "2m",
         "{{ $labels.gateway }} has not applied the newest changes", "penstockctl get sync, then penstockctl status at the gateway.", "30+0", "0+0", TO, base=SY)
on_gauge("ServicesRefused", "penstock-sync", "warning", "penstock_sync_gateway_refused_services", "> 0", "10m", "{{ $labels.gateway }} refuses Services",
         "penstockctl get services -o wide and describe service have the reasons.", "1+0", "0+0", TO, base=SY)
on_increase("AuditDifference", "penstock-sync", "warning", "penstock_sync_audit_differences_total", "1h", 0, "0m",
            "The audit of penstock-sync repaired a difference at {{ $labels.gateway }}", "This is a bug: please report it with the log of penstock-sync. penstockctl get sync shows the state.",
            TO, base=SY)
on_increase("EventsDropped", "penstock-sync", "info", "penstock_sync_events_dropped_total", "1h", 0, "10m", "Events are not posted: {{ $labels.cause }}",
            "penstockctl get sync; check the rights of penstock-sync for Events.", 'cause="forbidden"', base=SY)

# Addresses from pools, and their writer.
SERVER = "exists only with an API server"
on_gauge("ServicesWithoutAddress", "addresses", "warning", "penstock_services_without_address", "> 0", "10m",
         "LoadBalancer Services get no address: {{ $labels.reason }}", "penstockctl get addresses lists them; penstockctl get pools.", "1+0", "0+0", 'reason="NoPool"', base=SY)
on_gauge("AddressRequestRefused", "addresses", "info", "penstock_services_with_refused_request", "> 0", "1h",
         "Requests for addresses are refused: {{ $labels.reason }}", "penstockctl get addresses lists them.", "1+0", "0+0", 'reason="NoPool"', base=SY)
FREE = SY + ',pool="p",family="IPv4"'
alert("PoolNearlyExhausted", "addresses", "warning",
      'penstock_pool_addresses{state="free"} / ignoring (state) penstock_pool_addresses{state="total"}', "< 0.1", "15m",
      "Pool {{ $labels.pool }} has less than 10 % of its {{ $labels.family }} addresses left", "penstockctl get pools, describe pool; add ranges.",
      {series("penstock_pool_addresses", FREE + ',state="free"'): "1+0x120", series("penstock_pool_addresses", FREE + ',state="total"'): "100+0x120"},
      {series("penstock_pool_addresses", FREE + ',state="free"'): "50+0x120", series("penstock_pool_addresses", FREE + ',state="total"'): "100+0x120"},
      labels={"pool": "p", "family": "IPv4", "instance": "sy", "job": SYNC_JOB})
alert("NotOneLeader", "addresses", "critical", "sum without (instance, pod) (penstock_leader)", "!= 1", "2m",
      "Not exactly one penstock-sync assigns addresses", "penstockctl get sync of each process; kubectl get lease.",
      {series("penstock_leader", SY): "0+0x120"}, {series("penstock_leader", SY): "1+0x120"}, empty=SERVER)
on_increase("LeaderChanges", "addresses", "warning", "penstock_lease_transitions_total", "1h", 0.001, "0m", "The writer of addresses changes often",
            "penstockctl get sync; check the latency of the API server.", base=SY, step=1, empty=SERVER)
on_gauge("StatusWritesPending", "addresses", "warning", "penstock_status_writes_pending", "> 0", "10m", "The status of objects ({{ $labels.object }}) is not written",
         "penstockctl get sync has the last error; check the rights of penstock-sync.", "2+0", "0+0", 'object="service"', base=SY, empty=SERVER)


def add_drops(reasons):
    """One alert for each drop reason of drops.ALERTED; its action is the page's."""
    for name, (severity, limit) in drops.ALERTED.items():
        camel = "".join(word.capitalize() for word in name.split("_"))
        one = f'penstock_drops_total{{{GW},worker="0",reason="{name}"}}'
        alert(f"Drop{camel}", "drops", severity, f'sum without (worker) (rate(penstock_drops_total{{reason="{name}"}}[5m]))', f"> {limit}",
              "0m" if severity == "critical" or limit == 0 else "10m", f"Packets are dropped {AT}: {reasons[name].meaning}",
              f"{reasons[name].action} penstockctl stats has the counter.", {one: "0+90000x120"}, {one: "7+0x120"})


def firing_labels(one):
    """Labels of the alert that `fires` causes: those of its first series that its expression keeps."""
    labels = dict(re.findall(r'(\w+)="([^"]*)"', next(iter(one.fires))))
    removed = [name for list_ in re.findall(r"(?:sum|max) without \(([\w, ]+)\)", one.of) for name in list_.split(", ")]
    kept = {name: value for name, value in labels.items() if name not in removed and value}
    if one.of.startswith("count by (job)"):
        kept = {"job": GATEWAY_JOB}
    elif one.of.startswith("absent("):
        kept = {"job": GATEWAY_JOB}
    return one.labels or kept
