"""Who asks how the gateway is: load balancers by healthCheckNodePort and /healthz, and the operator who takes it out of service."""
import json

from fixture import LB_IP, case, check, equal, until
from lab import network as net
from manifests import endpoints, service

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
    # The port said 503 before.
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
    check("Drained:" in lab.gateway.ctl("status").stdout, "status does not say that the gateway is drained")
    equal(lab.gateway.ctl("undrain").returncode, 0, "exit code of undrain")
    for port in (HEALTH_PORT, PROXY_PORT):
        equal(health(lab, "/healthz", port).status, 200, f"port {port} afterwards")
