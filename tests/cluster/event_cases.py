# SPDX-License-Identifier: Apache-2.0
"""The state of a Service for its owner in `kubectl describe`, and metrics and health for operators of
Penstock."""
import urllib.error
import urllib.request

from cluster_bed import PATIENCE_S
from fixture import VIP, VIP2, case, check, equal, until
from testbed.cluster import free_ports


def events_of(lab, service, reason):
    listed = lab.kubectl.json("get", "events", "-n", lab.kube_namespace)["items"]
    return [event for event in listed if event["involvedObject"]["name"] == service and event["reason"] == reason]


def until_event(lab, service, reason):
    until(f"the Event {reason} on {service}", lambda: events_of(lab, service, reason), PATIENCE_S, 0.5)
    return events_of(lab, service, reason)


@case()
def the_loser_of_a_conflict_is_told_who_won_SVC018_EVT001(lab):
    o = lab.objects
    lab.start(o.service("first", external_ips=[VIP]), o.backends("first"), wait_for=["first/tcp"])
    lab.kubectl.apply(o.service("second", external_ips=[VIP, VIP2]), o.backends("second"))
    event = until_event(lab, "second", "FrontendConflict")[0]
    equal(event["type"], "Warning", "type")
    check("first" in event["message"] and VIP in event["message"], f"the message does not name the owner: {event['message']}")
    check(len(event["message"]) <= 1024, "the message is too long")
    service = lab.kubectl.json("get", "service", "second", "-n", lab.kube_namespace)
    equal(event["involvedObject"]["uid"], service["metadata"]["uid"], "uid of the object")
    equal(event["involvedObject"]["kind"], "Service", "kind of the object")
    equal((event.get("source") or {}).get("component") or event.get("reportingComponent"), "penstock", "component")
    equal(events_of(lab, "first", "FrontendConflict"), [], "Events on the winner")
    # Its other address works. The contested address is granted when its owner is removed.
    lab.until_open(VIP2)
    lab.delete("service", "first")
    until("the loser takes over", lambda: lab.connection_outcome(VIP, 80, 0.5) == "open", PATIENCE_S)


@case()
def an_external_ip_that_is_not_allowed_is_told_and_not_served_XIP006_EVT001(lab):
    o = lab.objects
    lab.start(o.service("web", external_ips=["198.51.100.9", VIP]), o.backends("web"), wait_for=["web/tcp"])
    event = until_event(lab, "web", "ExternalIPNotAllowed")[0]
    equal(event["type"], "Warning", "type")
    check("198.51.100.9" in event["message"], f"the message does not name the address: {event['message']}")
    equal(lab.get().status, 200, "the address that is allowed")


@case()
def a_repeated_warning_is_one_event_EVT002(lab):
    o = lab.objects
    lab.start(o.service("web", external_ips=["198.51.100.9", VIP]), o.backends("web"), wait_for=["web/tcp"])
    until_event(lab, "web", "ExternalIPNotAllowed")
    for i in range(3):
        lab.kubectl.patch("service", "web", lab.kube_namespace, {"metadata": {"annotations": {"example.org/turn": str(i)}}})
    lab.apply(o.service("later", external_ips=[VIP2]), o.backends("later"), wait_for=["later/tcp"])
    equal(len(events_of(lab, "web", "ExternalIPNotAllowed")), 1, "Event objects")


@case(waits_s=30)
def health_and_metrics_follow_the_api_server(lab):
    o, listening = lab.objects, f"{lab.cluster.address}:{free_ports(lab.cluster.address, 1)[0]}"

    def answer(path):
        try:
            with urllib.request.urlopen(f"http://{listening}{path}", timeout=5) as response:
                return response.status, response.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
    lab.start(o.service("web", external_ips=[VIP]), o.backends("web"), wait_for=["web/tcp"], options=["--http", listening])
    until("it is ready", lambda: answer("/readyz")[0] == 200, PATIENCE_S, 0.1)
    equal(answer("/healthz")[0], 200, "HTTP status of /healthz")
    status, metrics = answer("/metrics")
    equal(status, 200, "HTTP status of /metrics")
    equal(stale_seconds(metrics), 0, "age of what it knows")
    for user in ("penstock-sync", "admin"):
        check(lab.cluster.tokens[user] not in metrics, "a token among the metrics (AUTH-009)")
    lab.cluster.kill_api_server()
    # A restart would not help: the gateway has the last known state.
    until("the outage is noticed", lambda: stale_seconds(answer("/metrics")[1]) > 1, PATIENCE_S, 0.2)
    equal((answer("/healthz")[0], answer("/readyz")[0]), (200, 200), "HTTP status of /healthz and /readyz without an API server")
    lab.cluster.start_api_server()
    until("it is in step again", lambda: stale_seconds(answer("/metrics")[1]) == 0, 120, 0.2)


def stale_seconds(metrics):
    """The age of the most stale collection."""
    return max(float(line.split()[-1]) for line in metrics.splitlines() if line.startswith("penstock_sync_stale_seconds"))


@case()
def penstockctl_shows_the_source_its_collections_and_the_gateway(lab):
    o = lab.objects
    lab.start(o.service("web", external_ips=[VIP]), o.backends("web"), wait_for=["web/tcp"])
    counts = {kind: len(lab.kubectl.json("get", kind, "-A")["items"]) for kind in ("services", "endpointslices", "nodes")}
    shown = {}

    def in_step():
        """The status is a snapshot and may be outdated by a moment."""
        shown.update(lab.gateway.sync_status())
        objects = {entry["kind"]: int(entry["objects"]) for entry in shown["collections"]}
        return objects == counts and int(shown["gateways"][0]["lag_ms"]) == 0
    try:
        until("it tells of all objects, and of a gateway that has them", in_step, PATIENCE_S, 0.1)
    except AssertionError as late:
        raise AssertionError(f"{late}: {counts} wanted, {shown}") from late
    equal(shown["source"], lab.cluster.url, "source")
    equal({(entry["state"], entry["listed"]) for entry in shown["collections"]}, {("WATCHING", True)}, "state of each collection")
    equal([(gateway["name"], gateway["connected"]) for gateway in shown["gateways"]], [("edge-1", True)], "gateways")
    text = lab.gateway.ctl("--sync-server", lab.gateway.sync_address, "get", "sync")
    check(text.returncode == 0 and "endpointslices" in text.stdout, f"for people:\n{text.stdout}{text.stderr}")
