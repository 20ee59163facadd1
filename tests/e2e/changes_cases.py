# SPDX-License-Identifier: Apache-2.0
"""Configuration changes while traffic flows."""
import threading
import time

from fixture import Background, VIP, VIP2, case, check, equal, until
from lab.network import BACKENDS
from manifests import endpoints, service


@case(workers=(1, 2))
def flows_stay_with_a_backend_that_is_removed_and_new_ones_avoid_it_DRAIN001_DRAIN004(lab):
    lab.start(service("web", external_ips=[VIP]), endpoints("web"))
    content = lab.make_file("slow", 4_000_000)
    downloads = []
    threads = [threading.Thread(target=lambda: downloads.append(lab.get(path="/slow/slow", timeout_s=30))) for _ in range(6)]
    for thread in threads:
        thread.start()
    until("six connections", lambda: len(lab.gateway.json("get", "connections")) >= 6)
    lab.apply(service("web", external_ips=[VIP]), endpoints("web", ["backend-2"]))
    until("new flows use only backend-2", lambda: set(lab.answered_by(3)) == {"backend-2"})
    check(all(thread.is_alive() for thread in threads), "the downloads ended before the change could reach them")
    equal(set(lab.answered_by(12)), {"backend-2"}, "backends of new flows")
    for thread in threads:
        thread.join()
    equal([answer.body == content for answer in downloads], [True] * 6, "downloads that are intact")
    equal({answer.backend for answer in downloads}, set(BACKENDS), "backends of the flows from before")


@case(workers=(1, 2))
def no_request_fails_while_backends_come_and_go_DRAIN001(lab):
    lab.start(service("web", external_ips=[VIP]), endpoints("web"))
    with Background(lab.get) as load:
        for i in range(20):
            lab.apply(service("web", external_ips=[VIP]), endpoints("web", [name for j, name in enumerate(BACKENDS) if j != i % 3]))
            time.sleep(0.1)
    equal(load.errors, [], "failed requests")
    check(len(load.results) >= 20, f"only {len(load.results)} requests during 20 changes")
    equal({answer.status for answer in load.results}, {200}, "statuses")


@case()
def an_endpoint_that_moves_to_another_slice_costs_no_syn_GEN008_EP017(lab):
    """Moves the only endpoint from one slice to the other: removed first and added up to 45 ms later, as a
    controller does in two requests."""
    def slice_of(name, backends):
        part = endpoints("web", backends)
        part["metadata"]["name"] = f"web-{name}"
        return part
    lab.start(service("web", external_ips=[VIP]))
    lab.apply(slice_of("a", ["backend-1"]), file="a.yaml")
    lab.apply(slice_of("b", []), file="b.yaml")
    until("the endpoint serves", lambda: lab.connection_outcome(VIP, 80) == "open")
    source, target = "a", "b"
    judged = 0
    for gap_ms in [0, 1, 5, 15, 30, 45] * 3:
        with Background(lambda: lab.connection_outcome(VIP, 80)) as load:
            began = time.monotonic()
            lab.apply(slice_of(source, []), file=f"{source}.yaml")
            time.sleep(gap_ms / 1000)
            lab.apply(slice_of(target, ["backend-1"]), file=f"{target}.yaml")
            took_ms = 1000 * (time.monotonic() - began)
            time.sleep(0.15)
        source, target = target, source
        if took_ms <= 50:  # a busy machine may be slower than a controller
            judged += 1
            equal(load.errors, [], f"errors at a gap of {gap_ms} ms")
            equal(set(load.results), {"open"}, f"outcomes of {len(load.results)} SYNs at a gap of {gap_ms} ms")
    check(judged > 0, "no move took 50 ms or less")
    lab.apply(slice_of(source, []), file=f"{source}.yaml")
    until("an endpoint that is really gone is refused", lambda: lab.connection_outcome(VIP, 80) == "refused")


@case(workers=(1, 2))
def a_service_changes_as_one_atom_GEN007_SVC016(lab):
    """Swaps the backends of two ports repeatedly. A partly applied change would show one backend behind both
    ports."""
    def state(first, second):
        return (service("a", 80, external_ips=[VIP]), endpoints("a", [first]), service("b", 81, external_ips=[VIP]),
                endpoints("b", [second]))
    lab.start(*state("backend-1", "backend-2"))

    def one_service_with_two_ports(swapped):
        web = service("web", 80, external_ips=[VIP2])
        web["spec"]["ports"] = [{"name": "x", "port": 81 if swapped else 80, "targetPort": 9376, "protocol": "TCP"},
                                {"name": "y", "port": 80 if swapped else 81, "targetPort": 9376, "protocol": "TCP"}]
        slices = []
        for name, backend in (("x", "backend-1"), ("y", "backend-2")):
            of_port = endpoints("web", [backend])
            of_port["metadata"]["name"] = f"web-{name}"
            of_port["ports"][0]["name"] = name
            slices.append(of_port)
        return (web, *slices)
    lab.apply(*one_service_with_two_ports(False), file="swap.yaml")
    until("both ports are served", lambda: lab.connection_outcome(VIP2, 80) == lab.connection_outcome(VIP2, 81) == "open")
    with Background(lambda: lab.get(VIP2, 80).backend) as on_80, Background(lambda: lab.get(VIP2, 81).backend) as on_81:
        for i in range(20):
            lab.apply(*one_service_with_two_ports(i % 2 == 0), file="swap.yaml")
            time.sleep(0.1)
    equal(on_80.errors + on_81.errors, [], "failed requests")
    for port, load in ((80, on_80), (81, on_81)):
        equal(set(load.results), {"backend-1", "backend-2"}, f"backends seen on port {port}")
    for _ in range(5):
        equal(lab.get(VIP, 80).backend, "backend-1", "the other Service, which did not change")


@case(alone=True)
def an_edited_file_is_applied_within_a_second(lab):
    lab.start(service("web", external_ips=[VIP]), endpoints("web", ["backend-1"]))
    took = []
    for backend in ("backend-2", "backend-3", "backend-1", "backend-2", "backend-3"):
        lab.apply(service("web", external_ips=[VIP]), endpoints("web", [backend]))
        took.append(until(f"{backend} answers", lambda: lab.get().backend == backend, patience_s=1.0, step_s=0.001))
    lab.remarks.append(f"edit to first packet: {', '.join(f'{ms:.0f}' for ms in took)} ms")


@case()
def an_invalid_document_leaves_the_last_good_state_and_its_neighbours_GEN001_GEN003(lab):
    good = service("web", external_ips=[VIP])
    lab.start(good, endpoints("web"), service("other", 81, external_ips=[VIP]), endpoints("other"))
    bad = service("web", external_ips=[VIP])
    bad["spec"]["ports"][0]["port"] = "80"  # a string instead of a number
    lab.apply(bad, endpoints("web"), "kind: Service\nmetadata: [unclosed", service("other", 81, external_ips=[VIP]), endpoints("other"),
              service("third", 82, external_ips=[VIP]), endpoints("third"))
    until("the new Service beside the broken ones is served", lambda: lab.connection_outcome(VIP, 82) == "open")
    equal(lab.get(VIP, 80).status, 200, "the Service whose document is invalid now")
    equal(lab.get(VIP, 81).status, 200, "a Service in the same file")
    with open(lab.run.file("penstock-sync.log")) as log:
        said = log.read()
    check("objects.yaml" in said and "port" in said, f"penstock-sync does not name file and rule:\n{said}")


@case()
def a_service_whose_file_goes_is_withdrawn_SVC016(lab):
    lab.start(service("web", external_ips=[VIP]), endpoints("web"))
    lab.apply(service("extra", 81, external_ips=[VIP]), endpoints("extra"), file="extra.yaml")
    until("the second file is applied", lambda: lab.connection_outcome(VIP, 81) == "open")
    import os
    os.unlink(os.path.join(lab.manifests, "extra.yaml"))
    until("its Service is gone", lambda: lab.connection_outcome(VIP, 81, timeout_s=0.2) != "open")
    equal(lab.get(VIP, 80).status, 200, "the other Service")
