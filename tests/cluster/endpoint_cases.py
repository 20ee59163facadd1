# SPDX-License-Identifier: Apache-2.0
"""EndpointSlices of every size, written one by one as a controller does."""
import time

from cluster_bed import PATIENCE_S
from fixture import Background, VIP, case, check, equal, until
from lab.network import BACKENDS


@case(endpoints=(1, 100, 1000))
def a_slice_of_any_size_is_served_EP001(lab):
    o, count = lab.objects, lab.variant["endpoints"]
    pods = lab.pod_addresses(count)
    lab.start()
    lab.route_pods()
    began = time.monotonic()
    lab.apply(o.service("web", external_ips=[VIP]), o.slice("web", pods), wait_for=["web/tcp"])
    lab.until_backends("web", pods)
    lab.remarks.append(f"{count} endpoints in {time.monotonic() - began:.1f} s")
    answered = [lab.server_address(VIP) for _ in range(min(count, 60))]
    check(set(answered) <= set(pods), f"answers from elsewhere: {set(answered) - set(pods)}")
    equal(len(set(answered)), len(answered), "each new connection has the next endpoint in turn")
    # One less.
    lab.apply(o.slice("web", pods[:-1]))
    lab.until_backends("web", pods[:-1])
    if count == 1:
        until("the last one gone is a refusal", lambda: lab.connection_outcome(VIP, 80) == "refused", PATIENCE_S)


@case()
def slices_of_one_service_are_merged_and_each_may_go_EP002_EP003(lab):
    o = lab.objects
    pods = lab.pod_addresses(300)
    slices = [o.slice("web", pods[first:first + 100], name=f"web-{first}") for first in (0, 100, 200)]
    lab.start()
    lab.route_pods()
    lab.apply(o.service("web", external_ips=[VIP]), *slices, wait_for=["web/tcp"])
    lab.until_backends("web", pods)
    lab.delete("endpointslice", "web-100")
    lab.until_backends("web", pods[:100] + pods[200:])
    # An endpoint moves from one slice to another. For a moment it is in both, as the API allows, and never in
    # none.
    moved = pods[0]
    lab.kubectl.apply(o.slice("web", pods[200:] + [moved], name="web-200"))
    lab.kubectl.apply(o.slice("web", pods[1:100], name="web-0"))
    lab.until_backends("web", pods[:100] + pods[200:])
    equal(lab.get().status, 200, "a request")


@case()
def a_slice_follows_its_label_from_one_service_to_another_EP002(lab):
    o = lab.objects
    moving = o.backends("blue", ["backend-2"], name="moving")
    lab.start(o.service("blue", external_ips=[VIP]), o.backends("blue", ["backend-1"]), moving,
              o.service("green", 81, external_ips=[VIP]), o.backends("green", ["backend-3"]), wait_for=["blue/tcp", "green/tcp"])
    lab.until_backends("blue", [BACKENDS["backend-1"], BACKENDS["backend-2"]])
    lab.patch("moving", {"metadata": {"labels": {"kubernetes.io/service-name": "green"}}}, kind="endpointslice")
    lab.until_backends("blue", [BACKENDS["backend-1"]])
    lab.until_backends("green", [BACKENDS["backend-2"], BACKENDS["backend-3"]])
    equal(set(lab.answered_by(4)), {"backend-1"}, "backends of the one that lost it")
    equal(set(lab.answered_by(4, VIP, 81)), {"backend-2", "backend-3"}, "backends of the one that got it")


@case()
def an_endpoint_that_is_not_ready_gets_nothing_new_until_it_is_DRAIN003(lab):
    o = lab.objects
    lab.start(o.service("web", external_ips=[VIP]), o.backends("web", not_ready=[BACKENDS["backend-2"]]), wait_for=["web/tcp"])
    lab.until_backends("web", [BACKENDS["backend-1"], BACKENDS["backend-3"]])
    equal(set(lab.answered_by(8)), {"backend-1", "backend-3"}, "backends that answer")
    lab.apply(o.backends("web"))
    lab.until_backends("web", BACKENDS.values())
    equal(set(lab.answered_by(9)), set(BACKENDS), "backends that answer")


@case()
def a_service_may_come_long_after_its_slices_and_go_before_them_EP001_SVC016(lab):
    o = lab.objects
    lab.start(o.backends("web"), o.service("beside", 81, external_ips=[VIP]), o.backends("beside"), wait_for=["beside/tcp"])
    lab.apply(o.service("web", external_ips=[VIP]), wait_for=["web/tcp"])
    equal(set(lab.answered_by(9)), set(BACKENDS), "backends that answer")
    lab.delete("service", "web")
    lab.until_closed(VIP)
    lab.apply(o.service("web", external_ips=[VIP]), wait_for=["web/tcp"])
    equal(set(lab.answered_by(9)), set(BACKENDS), "backends that answer after it came back")


@case()
def a_rolling_update_of_fifty_endpoints_fails_no_new_connection_DRAIN001_DRAIN004(lab):
    o, step = lab.objects, 10
    old, new = lab.pod_addresses(50), lab.pod_addresses(50, first=600)
    lab.start()
    lab.route_pods()
    lab.apply(o.service("web", external_ips=[VIP]), o.slice("web", old), wait_for=["web/tcp"])
    lab.until_backends("web", old)
    with Background(lambda: lab.server_address(VIP)) as load, Background(lambda: lab.server_address(VIP)) as more_load:
        for done in range(step, 51, step):
            # As in a Deployment: new endpoints are added, then the old ones terminate, and finally they are
            # removed and refuse connections.
            lab.apply(o.slice("web", old[done - step:] + new[:done]))
            lab.until_backends("web", old[done - step:] + new[:done])
            leaving = old[done - step:done]
            lab.apply(o.slice("web", old[done - step:] + new[:done], terminating=leaving))
            lab.until_backends("web", old[done:] + new[:done])
            lab.refuse_new_connections_to(leaving)
            lab.apply(o.slice("web", old[done:] + new[:done]))
        enough = len(load.results)
        until("traffic went on after the last step", lambda: len(load.results) > enough + 20, PATIENCE_S)
    equal(load.errors + more_load.errors, [], "failed new connections")
    answered = load.results + more_load.results
    check(set(answered) & set(old) and set(answered) & set(new), "both generations should have answered")
    lab.remarks.append(f"{len(answered)} connections, {len(set(answered))} endpoints answered")
