# SPDX-License-Identifier: Apache-2.0
"""Outages and restarts of an API server: traffic continues, and missed changes are applied afterwards."""
import contextlib
import os
import signal
import time

from fixture import Background, VIP, VIP2, case, check, equal, until
from lab.network import BACKENDS

outage_s = 20
# penstock-sync backs off up to 30 s, times a random factor of up to 2 (APISYNC-012), and the machine may be
# busy.
RECONNECT_S = 120.0
# Between two requests of the load: for minutes, other cases run beside it.
PAUSE_S = 0.005


def web(lab):
    return lab.objects.service("web", external_ips=[VIP]), lab.objects.backends("web")


@case(waits_s=50, how=("killed",))
@case(waits_s=20, how=("frozen",))
def an_api_server_that_is_away_is_not_noticed_by_traffic_APISYNC014_APISYNC012(lab):
    lab.start(*web(lab), wait_for=["web/tcp"])
    killed = lab.variant["how"] == "killed"
    with Background(lab.get, PAUSE_S) as load, contextlib.ExitStack() as anyway:
        if killed:
            lab.cluster.kill_api_server()
        else:  # its kernel still acknowledges all data
            lab.cluster.api_server.send_signal(signal.SIGSTOP)
            anyway.callback(lab.cluster.api_server.send_signal, signal.SIGCONT)
        began, before = time.monotonic(), len(load.results)
        until("the outage is over", lambda: time.monotonic() - began > outage_s, 2 * outage_s, 0.1)
        equal({answer.backend for answer in load.results[before:]}, set(BACKENDS), "backends that answer without an API server")
        check(lab.gateway.sync.poll() is None, "penstock-sync ended")
        if killed:
            lab.cluster.start_api_server()
        else:
            lab.cluster.api_server.send_signal(signal.SIGCONT)
        lab.apply(lab.objects.service("more", 81, external_ips=[VIP]), lab.objects.backends("more"), lab.objects.backends("web", ["backend-2"]))
        back = until("changes arrive again", lambda: lab.connection_outcome(VIP, 81, 0.5) == "open", RECONNECT_S, 0.05)
        until("changes of the other collection do", lambda: set(lab.answered_by(6)) == {"backend-2"}, RECONNECT_S, 0.05)
    equal(load.errors, [], "failed requests")
    lab.remarks.append(f"{len(load.results)} requests; in step {back / 1000:.1f} s after it was ready")


@case(waits_s=30)
def penstock_sync_may_start_before_the_api_server_APISYNC012(lab):
    lab.kubectl.apply(*web(lab))
    lab.cluster.kill_api_server()
    lab.start_gateway()
    lab.start_sync("--kubeconfig", lab.cluster.file("sync.kubeconfig"))
    time.sleep(2)
    check(lab.gateway.sync.poll() is None, "penstock-sync ended")
    equal(lab.gateway.services(), {}, "services before any source was read")
    lab.cluster.start_api_server()
    lab.gateway.until_served({lab.key("web/tcp")}, RECONNECT_S)
    equal(set(lab.answered_by(9)), set(BACKENDS), "backends that answer")


@case()
def a_past_that_is_compacted_away_means_a_new_list_and_its_difference_APISYNC006(lab):
    o = lab.objects
    lab.start(*web(lab), o.service("goes", 81, external_ips=[VIP]), o.backends("goes"), wait_for=["web/tcp", "goes/tcp"])
    before = relists(lab)
    with Background(lab.get, PAUSE_S) as load:
        # It is stopped while the objects change, so its last version is older than the API server's history.
        # Data on an open connection would still reach it, from the kernel's buffer. Its connections therefore
        # end before the objects change.
        lab.gateway.sync.send_signal(signal.SIGSTOP)
        try:
            last = lab.cluster.request("GET", "/api/v1/services?limit=1")[1]["metadata"]["resourceVersion"]
            lab.cluster.restart_api_server()
            lab.delete("service", "goes")
            lab.apply(o.service("comes", 82, external_ips=[VIP]), o.backends("comes"), o.backends("web", ["backend-3"]))
            lab.cluster.forget_the_past()
            lab.cluster.restart_api_server()
            answer = lab.cluster.request("GET", f"/api/v1/services?watch=1&resourceVersion={last}&timeoutSeconds=1")
            equal(answer[1]["object"]["code"], 410, "what a watch from before is answered")
        finally:
            lab.gateway.sync.send_signal(signal.SIGCONT)
        until("what came while it slept", lambda: lab.connection_outcome(VIP, 82, 0.5) == "open", RECONNECT_S, 0.05)
        lab.until_closed(VIP, 81)
        until("what changed while it slept", lambda: set(lab.answered_by(6)) == {"backend-3"}, RECONNECT_S, 0.05)
        # It then follows changes again.
        lab.apply(o.service("later", external_ips=[VIP2]), o.backends("later"), wait_for=["later/tcp"])
    equal(load.errors, [], "failed requests")
    after = relists(lab)
    check(all(after[kind] > before[kind] for kind in ("services", "endpointslices")), f"no new list: {before} before, {after} after")


@case()
def a_rotated_token_is_used_without_a_restart_AUTH004_APISYNC013(lab):
    token_file = lab.run.file("token")
    write(token_file, lab.cluster.tokens["penstock-sync"])
    lab.start(*web(lab), wait_for=["web/tcp"], kubeconfig=lab.cluster.write_kubeconfig("token-file", {"tokenFile": token_file}))
    with Background(lab.get, PAUSE_S) as load:
        old = lab.cluster.tokens["penstock-sync"]
        new = lab.cluster.new_token("penstock-sync")
        lab.cluster.write_kubeconfig("sync", {"token": new})  # for the following cases
        lab.cluster.restart_api_server()
        equal(lab.cluster.request("GET", "/api/v1/services", token=old)[0], 401, "HTTP status for the old token")
        until("it is refused", lambda: "401" in lab.sync_log() or "nauthorized" in lab.sync_log(), RECONNECT_S, 0.05)
        write(token_file, new)
        lab.apply(lab.objects.service("more", 81, external_ips=[VIP]), lab.objects.backends("more"))
        back = until("changes arrive again", lambda: lab.connection_outcome(VIP, 81, 0.5) == "open", RECONNECT_S, 0.05)
    check(lab.gateway.sync.poll() is None, "penstock-sync ended")
    equal(load.errors, [], "failed requests")
    check(old not in lab.sync_log() and new not in lab.sync_log(), "a token is in the log (AUTH-009)")
    lab.remarks.append(f"in step {back / 1000:.1f} s after the new token was there")


@case(waits_s=30)
def another_authority_is_trusted_without_a_restart_AUTH005_AUTH006(lab):
    lab.start(*web(lab), wait_for=["web/tcp"])
    with Background(lab.get, PAUSE_S) as load:
        lab.cluster.new_authority()
        lab.cluster.restart_api_server()
        lab.apply(lab.objects.service("more", 81, external_ips=[VIP]), lab.objects.backends("more"))
        until("changes arrive again", lambda: lab.connection_outcome(VIP, 81, 0.5) == "open", RECONNECT_S, 0.05)
    check(lab.gateway.sync.poll() is None, "penstock-sync ended")
    equal(load.errors, [], "failed requests")


def relists(lab):
    return {entry["kind"]: int(entry["relists"]) for entry in lab.gateway.sync_status()["collections"]}


def write(path, text):
    """Replaces the file atomically, as kubelet replaces the token of a pod."""
    with open(path + ".new", "w") as file:
        file.write(text)
    os.rename(path + ".new", path)
