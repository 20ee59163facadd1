# SPDX-License-Identifier: Apache-2.0
"""Health endpoints of the gateway: healthCheckNodePort and /healthz for load balancers, and the operator's
`drain`."""
import json

import presence_cases as presence
from fixture import LB_IP, VIP, case, check, equal, until
from lab import network as net
from manifests import endpoints, service
from stopped_thread import stopped, threads_of

HEALTH_PORT = 31234
PROXY_PORT = 10256


def web(**more):
    return service("web", ingress_ips=[LB_IP], policy="Local", health_check_port=HEALTH_PORT, **more)


def terminating(slice_):
    for endpoint in slice_["endpoints"]:
        endpoint["conditions"] = {"ready": False, "serving": True, "terminating": True}
    return slice_


def health(lab, path="/", port=HEALTH_PORT):
    return lab.get(net.UPLINK, port, path)


def stop(lab):
    lab.gateway.daemon.terminate()
    equal(lab.gateway.daemon.wait(timeout=20), 0, "exit code of penstockd")


def status_becomes(lab, status, port=HEALTH_PORT):
    until(f"port {port} says {status}", lambda: health(lab, port=port, path="/healthz").status == status, patience_s=15)


@case(driver=("af_packet", "af_xdp"))
def the_health_check_port_counts_local_endpoints_while_traffic_goes_on_HC001_HC003_HC004(lab):
    lab.start(web(), endpoints("web", ["backend-1", "backend-2"]))
    until("the port is open", lambda: lab.connection_outcome(net.UPLINK, HEALTH_PORT) == "open", patience_s=15)
    answer = health(lab, "/any/path?x=y")
    equal(answer.status, 200, "status with two local endpoints")
    equal(json.loads(answer.body), {"service": {"namespace": "default", "name": "web"}, "localEndpoints": 2, "serviceProxyHealthy": True},
          "body")
    lab.apply(web(), terminating(endpoints("web", ["backend-1", "backend-2"])))
    status_becomes(lab, 503)
    equal(json.loads(health(lab).body)["localEndpoints"], 0, "local endpoints that are ready")
    equal(lab.get(LB_IP).status, 200, "traffic, which endpoints that terminate still serve")
    lab.apply(web(), endpoints("web", node="other-node"))
    status_becomes(lab, 503)
    # The port answered 503 before.
    until("traffic without a local endpoint is silence", lambda: lab.connection_outcome(LB_IP, 80) == "silence", patience_s=15)
    lab.apply(service("web", ingress_ips=[LB_IP]), endpoints("web"))
    until("the port closes with the policy", lambda: lab.connection_outcome(net.UPLINK, HEALTH_PORT) == "refused", patience_s=15)


@case()
def drain_sends_load_balancers_away_and_keeps_the_traffic_DRAIN006_HC006(lab):
    lab.start(web(), endpoints("web"))
    status_becomes(lab, 200)
    status_becomes(lab, 200, PROXY_PORT)
    equal(lab.gateway.ctl("drain").returncode, 0, "exit code of drain")
    for port in (HEALTH_PORT, PROXY_PORT):
        equal(health(lab, "/healthz", port).status, 503, f"port {port} while drained")
    equal(lab.get(LB_IP).status, 200, "a new connection while drained")
    equal(health(lab, "/livez", PROXY_PORT).status, 200, "/livez while drained: a restart would not mend it")
    status = lab.gateway.ctl("status")
    check("Drained:" in status.stdout and "not ready: drained" in status.stdout, f"status while drained:\n{status.stdout}")
    equal(status.returncode, 1, "exit code of status while drained")
    equal(lab.gateway.ctl("undrain").returncode, 0, "exit code of undrain")
    for port in (HEALTH_PORT, PROXY_PORT):
        equal(health(lab, "/healthz", port).status, 200, f"port {port} afterwards")


@case()
def drain_outlives_a_restart_and_waits_for_open_connections_only_DRAIN006(lab):
    lab.start(web(), endpoints("web"))
    status_becomes(lab, 200, PROXY_PORT)
    for _ in range(5):
        equal(lab.get(LB_IP).status, 200, "a connection that ends")
    until("all five are over", lambda: int(lab.gateway.json("status")["open_connections"]) == 0, patience_s=15)
    check(int(lab.gateway.json("status")["connections"]) > 0, "the table keeps no finished connection, so this case shows nothing")
    drained = lab.gateway.ctl("drain", "--timeout", "60", timeout_s=5)
    equal(drained.returncode, 0, f"exit code of drain --timeout: {drained.stderr}")
    held = lab.tcp_socket(LB_IP, 80)
    waited = lab.gateway.ctl("drain", "--timeout", "1")
    equal(waited.returncode, 1, "exit code of drain --timeout beside an open connection")
    check("after 1 s 1 connection is open" in waited.stderr, waited.stderr)
    held.close()
    stop(lab)
    lab.gateway.start_daemon()
    status_becomes(lab, 503, PROXY_PORT)
    check("Drained:" in lab.gateway.ctl("status").stdout, "the drain ended with the restart")
    equal(lab.gateway.ctl("undrain").returncode, 0, "exit code of undrain")
    stop(lab)
    lab.gateway.start_daemon()
    status_becomes(lab, 200, PROXY_PORT)
    equal(lab.gateway.ctl("drain", "--until-restart").returncode, 0, "exit code of drain --until-restart")
    stop(lab)
    lab.gateway.start_daemon()
    status_becomes(lab, 200, PROXY_PORT)


@case()
def without_a_configuration_or_a_needed_port_health_fails_and_says_why_HC006(lab):
    lab.build_network()
    lab.gateway.start_daemon()
    until("the port is open", lambda: lab.connection_outcome(net.UPLINK, PROXY_PORT) == "open", patience_s=15)
    answer = health(lab, "/healthz", PROXY_PORT)
    equal((answer.status, json.loads(answer.body)["reasons"]), (503, ["no configuration is in force"]), "/healthz without a configuration")
    equal(health(lab, "/livez", PROXY_PORT).status, 200, "/livez without a configuration")
    equal(lab.gateway.ctl("status").returncode, 1, "exit code of status without a configuration")
    lab.apply(web(), endpoints("web"))
    lab.gateway.start_sync(lab.manifests)
    status_becomes(lab, 200, PROXY_PORT)
    equal(lab.gateway.ctl("status").returncode, 0, "exit code of status")
    lab.network.ip("switch", "link set to-gateway down")
    until("the port is noticed", lambda: health(lab, "/healthz", PROXY_PORT).status == 503, patience_s=15)
    reasons = json.loads(health(lab, "/healthz", PROXY_PORT).body)["reasons"]
    check(len(reasons) == 1 and reasons[0].startswith("port cluster0 is down, and with it the way to ") and "endpoint" in reasons[0],
          f"reasons with the cluster's port down: {reasons}")
    equal(health(lab, "/livez", PROXY_PORT).status, 200, "/livez with a port down")
    lab.network.ip("switch", "link set to-gateway up")
    status_becomes(lab, 200, PROXY_PORT)


@case()
def a_worker_that_stops_is_noticed_until_it_goes_on_HC006_LB018(lab):
    # so it stops within a round
    presence.start(lab, presence.web(), endpoints("web"), options=["--idle", "poll"])
    presence.becomes_present(lab)
    status_becomes(lab, 200, PROXY_PORT)
    workers = threads_of(lab.gateway.daemon.pid, "rte-worker")
    equal(len(workers), 1, "worker threads")
    with stopped(workers[0]):
        # Only the gateway's own Linux answers at its twin, so these requests are sent on the gateway itself.
        local = lambda path: lab.network.run("gateway", "curl", "-s", "-o", "/dev/null", "-w", "%{http_code}",
                                             f"http://127.0.0.1:{PROXY_PORT}{path}").stdout
        until("/healthz says 503", lambda: local("/healthz") == "503", patience_s=15)
        equal(local("/livez"), "503", "/livez")
        status = lab.gateway.ctl("status")
        equal(status.returncode, 1, "exit code of status")
        check("not ready: worker 0 has made no round since 2" in status.stdout, f"status:\n{status.stdout}")
        presence.becomes_absent(lab)
        metrics = lab.network.run("gateway", "curl", "-s", "http://127.0.0.1:9105/metrics").stdout
        check('penstock_loop_stalled{loop="worker 0"} 1\n' in metrics and "penstock_ready 0\n" in metrics, "metrics of a stopped worker")
        # A change waits for it only for a limited time.
        lab.apply(presence.web(), presence.web("second", 81), endpoints("web"), endpoints("second"))
        lab.gateway.until_served({"default/second/tcp"})
    status_becomes(lab, 200, PROXY_PORT)
    presence.becomes_present(lab)
    equal(lab.get(presence.VIP_ON_LINK, 81).status, 200, "traffic afterwards, by the change of meanwhile")
    with open(lab.run.file("penstockd.log")) as log:
        text = log.read()
    check("worker 0 has made no round for " in text and "worker 0 is running again, after " in text, f"log:\n{text}")


@case()
def a_linux_follower_that_stops_is_noticed_until_it_goes_on_HC006(lab):
    lab.start(service("web", external_ips=[VIP]), endpoints("web"))
    status_becomes(lab, 200, PROXY_PORT)
    lab.answered_by(12)  # the next hops are resolved; the stopped follower resolves no more

    def metrics():
        return lab.network.run("gateway", "curl", "-s", "http://127.0.0.1:9105/metrics").stdout
    check('penstock_loop_stalled{loop="linux follower"} 0\n' in metrics(), "metrics of a follower that goes round")
    followers = threads_of(lab.gateway.daemon.pid, "linux-follower")
    equal(len(followers), 1, "threads that follow Linux")
    with stopped(followers[0]):
        until("the metrics say so", lambda: 'penstock_loop_stalled{loop="linux follower"} 1\n' in metrics(), patience_s=60, step_s=1)
        status = lab.gateway.ctl("status")
        equal(status.returncode, 1, "exit code of status")
        check("not ready: linux follower has made no round since 2" in status.stdout, f"status:\n{status.stdout}")
        equal(lab.get().status, 200, "traffic meanwhile")
    status_becomes(lab, 200, PROXY_PORT)
    with open(lab.run.file("penstockd.log")) as log:
        text = log.read()
    check("linux follower has made no round for " in text and "linux follower is running again, after " in text, f"log:\n{text}")
