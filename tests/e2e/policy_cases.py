# SPDX-License-Identifier: Apache-2.0
"""Access restrictions, the client address that the backend sees, and the result for clients of a Service
without endpoints."""
from fixture import LB_IP, NODE_PORT, VIP, VIP2, case, check, equal, until
from lab import gateway as gw
from lab import network as net
from manifests import endpoints, service


def counted(lab, key):
    return gw.traffic_of(lab.gateway.services()[key])


@case(workers=(1, 2))
def cluster_policy_shows_the_gateway_to_the_backend_ETP001_NAT002(lab):
    lab.start(service("web", external_ips=[VIP]), endpoints("web"), service("echo", 53, protocol="UDP", external_ips=[VIP]),
              endpoints("echo", port=5353, protocol="UDP"))
    equal(lab.get(path="/client").body.decode().strip(), net.CLUSTER, "source that nginx saw")
    equal(lab.echo(VIP, 53)[1], net.CLUSTER, "source that the echo saw")


@case(workers=(1, 2), driver=("af_packet", "af_xdp"))
def local_policy_shows_the_client_to_the_backend_ETP002_NAT003_XIP002(lab):
    lab.start(service("web", external_ips=[VIP], node_port=NODE_PORT, policy="Local"), endpoints("web"),
              service("echo", 53, protocol="UDP", external_ips=[VIP], policy="Local"), endpoints("echo", port=5353, protocol="UDP"))
    for address, port in ((VIP, 80), (net.UPLINK, NODE_PORT)):
        for _ in range(6):  # each backend twice
            equal(lab.get(address, port, "/client").body.decode().strip(), net.CLIENT, f"source that nginx saw behind {address}:{port}")
    equal(lab.echo(VIP, 53)[1], net.CLIENT, "source that the echo saw")


@case()
def local_policy_uses_only_endpoints_of_this_node_ETP002(lab):
    remote = endpoints("web", ["backend-1", "backend-2"], node="other-node")
    local = {**endpoints("web", ["backend-3"]), "metadata": {**remote["metadata"], "name": "web-2"}}
    lab.start(service("web", external_ips=[VIP], policy="Local"), remote, local)
    equal(set(lab.answered_by(9)), {"backend-3"}, "backends that answered")


@case()
def local_policy_without_a_local_endpoint_is_silence_and_without_any_is_refusal_ETP003_REJ001(lab):
    lab.start(service("web", external_ips=[VIP], policy="Local"), endpoints("web", node="other-node"),
              service("empty", external_ips=[VIP2], policy="Local"))
    equal(lab.connection_outcome(VIP, 80), "silence", "endpoints on another node")
    equal(lab.connection_outcome(VIP2, 80), "refused", "no endpoint at all")
    check(counted(lab, "default/web/tcp")["dropped"] > 0, "the drop is not counted")


@case(workers=(1, 2))
def no_endpoint_refuses_tcp_and_udp_at_once_REJ001_REJ002(lab):
    lab.start(service("web", external_ips=[VIP]), service("echo", 53, protocol="UDP", external_ips=[VIP]))
    equal(lab.connection_outcome(VIP, 80, timeout_s=5.0), "refused", "TCP")
    with lab.udp_socket(VIP, 53) as client:
        client.send(b"anyone?")
        try:
            answer = client.recv(100)
            raise AssertionError(f"an answer without an endpoint: {answer!r}")
        except ConnectionRefusedError:  # the kernel reports ICMP port unreachable on a connected socket
            pass
    # One, unless the client retransmitted its SYN because the machine was busy.
    check(counted(lab, "default/web/tcp")["rejected"] >= 1, "the TCP reject is not counted")
    equal(counted(lab, "default/echo/udp")["rejected"], 1, "UDP rejects counted")


@case()
def the_first_endpoint_ends_the_refusal_REJ001(lab):
    lab.start(service("web", external_ips=[VIP]))
    equal(lab.connection_outcome(VIP, 80), "refused", "before")
    lab.apply(service("web", external_ips=[VIP]), endpoints("web"))
    until("the endpoint is served", lambda: lab.connection_outcome(VIP, 80) == "open")
    equal(lab.get().status, 200, "status")


@case()
def source_ranges_filter_load_balancer_addresses_only_SRC001_SRC002(lab):
    lab.start(service("inside", ingress_ips=[LB_IP], source_ranges=["10.80.1.0/24"]), endpoints("inside"),
              service("outside", ingress_ips=["203.0.113.21"], external_ips=[VIP], source_ranges=["192.0.2.0/24"]), endpoints("outside"))
    equal(lab.get(LB_IP).status, 200, "client inside the ranges")
    equal(lab.connection_outcome("203.0.113.21", 80), "silence", "client outside the ranges")
    equal(lab.get(VIP).status, 200, "ExternalIP of the same Service")
    drops = lab.gateway.drops()
    check(drops["source_not_allowed"] >= 1, f"source_not_allowed is {drops['source_not_allowed']}")


@case()
def source_denied_and_no_endpoint_is_silence_SRC001(lab):
    lab.start(service("web", ingress_ips=[LB_IP], source_ranges=["192.0.2.0/24"]))
    equal(lab.connection_outcome(LB_IP, 80), "silence", "denied source, no endpoint")


@case()
def an_external_ip_outside_the_allowed_ranges_is_refused_by_name_XIP006(lab):
    lab.start(service("web", external_ips=[VIP]), endpoints("web"),
              service("hijack", external_ips=["198.51.100.7"]), endpoints("hijack"), wait_for={"default/web/tcp"})
    lab.network.ip("client", f"route add 198.51.100.7/32 via {net.UPLINK}")
    check(lab.connection_outcome("198.51.100.7", 80) != "open", "a refused address is served")
    described = lab.gateway.ctl("describe", "service", "default/hijack").stdout
    check("ExternalIPNotAllowed" in described, f"`describe service` does not name the rule:\n{described}")


@case()
def status_and_not_spec_opens_a_load_balancer_address_LB001(lab):
    web = service("web", ingress_ips=[LB_IP])
    web["spec"]["loadBalancerIP"] = "203.0.113.99"
    lab.start(web, endpoints("web"))
    equal(lab.get(LB_IP).status, 200, "address in status")
    check(lab.connection_outcome("203.0.113.99", 80) != "open", "the address in spec is served")


@case()
def a_node_port_never_answers_on_an_address_that_is_only_a_vip_NODEPORT004(lab):
    lab.start(service("a", node_port=NODE_PORT), endpoints("a"), service("b", 81, external_ips=[VIP]), endpoints("b"))
    equal(lab.get(net.UPLINK, NODE_PORT).status, 200, "the node's address")
    check(lab.connection_outcome(VIP, NODE_PORT) != "open", "the NodePort of one Service answers on the ExternalIP of another")
