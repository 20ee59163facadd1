# SPDX-License-Identifier: Apache-2.0
"""Services of each type are created, changed and deleted by kubectl; the client's packets must follow each
change."""
import time

from cluster_bed import needs
from fixture import LB_IP, NODE_PORT, VIP, VIP2, VIP_6, case, check, equal, until
from lab import network as net
from lab.network import BACKENDS
from testbed import bulk

OTHER_LB_IP = "203.0.113.21"
OTHER_NODE_PORT = 30081


@case()
def a_cluster_ip_service_with_external_ips_is_created_updated_and_deleted_SVC016_XIP001(lab):
    o = lab.objects
    lab.start(o.service("web", external_ips=[VIP]), o.backends("web"), wait_for=["web/tcp"])
    equal(set(lab.answered_by(9)), set(BACKENDS), "backends that answer")
    lab.patch("web", {"spec": {"externalIPs": [VIP2]}})
    lab.until_open(VIP2)
    lab.until_closed(VIP)
    lab.patch("web", {"spec": {"ports": [{"port": 8080, "protocol": "TCP", "targetPort": 9376}]}})
    lab.until_open(VIP2, 8080)
    lab.until_closed(VIP2, 80)
    lab.delete("service", "web")
    lab.until_closed(VIP2, 8080)
    until("it is gone from the gateway", lambda: lab.key("web/tcp") not in lab.gateway.services())


@case()
def a_node_port_service_is_created_updated_and_deleted_NODEPORT001_NODEPORT006(lab):
    o = lab.objects
    lab.start(o.service("web", kind="NodePort", node_port=NODE_PORT), o.backends("web"), wait_for=["web/tcp"])
    equal(set(lab.answered_by(9, net.UPLINK, NODE_PORT)), set(BACKENDS), "backends that answer")
    lab.kubectl.apply(o.service("web", kind="NodePort", node_port=OTHER_NODE_PORT))
    lab.until_open(net.UPLINK, OTHER_NODE_PORT)
    lab.until_closed(net.UPLINK, NODE_PORT)
    lab.kubectl.apply(o.service("web", external_ips=[VIP]))  # a type without node ports
    lab.until_open(VIP)
    lab.until_closed(net.UPLINK, OTHER_NODE_PORT)
    lab.delete("service", "web")
    lab.until_closed(VIP)


@case()
def a_load_balancer_is_served_as_its_status_says_LB001(lab):
    o = lab.objects
    lab.start(o.service("web", kind="LoadBalancer"), o.backends("web"), o.service("beside", external_ips=[VIP]), o.backends("beside"),
              wait_for=["beside/tcp"])
    node_port = lab.kubectl.json("get", "service", "web", "-n", lab.kube_namespace)["spec"]["ports"][0]["nodePort"]
    lab.until_open(net.UPLINK, node_port)  # the node port that the API server chose
    check(lab.connection_outcome(LB_IP, 80, 0.3) != "open", "a load balancer's address is served before its status names it")
    lab.cluster.patch_status(lab.kube_namespace, "web", {"loadBalancer": {"ingress": [{"ip": LB_IP}]}})
    lab.until_open(LB_IP)
    equal(set(lab.answered_by(9, LB_IP)), set(BACKENDS), "backends that answer")
    lab.cluster.patch_status(lab.kube_namespace, "web", {"loadBalancer": {"ingress": [{"ip": OTHER_LB_IP}]}})
    lab.until_open(OTHER_LB_IP)
    lab.until_closed(LB_IP)
    lab.delete("service", "web")
    lab.until_closed(OTHER_LB_IP)
    lab.until_closed(net.UPLINK, node_port)


@case()
def headless_and_external_name_services_are_nobodys_frontend_until_they_change_SVC002_SVC003(lab):
    o = lab.objects
    lab.start(o.service("headless", external_ips=[VIP], clusterIP="None"), o.backends("headless"),
              {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "outside", "namespace": lab.kube_namespace},
               "spec": {"type": "ExternalName", "externalName": "www.example.org"}}, o.backends("outside"),
              o.service("beside", 81, external_ips=[VIP]), o.backends("beside"), wait_for=["beside/tcp"])
    equal(lab.connection_outcome(VIP, 80, 0.3) == "open", False, "the headless Service's address is served")
    check(not any(name in key for key, status in lab.gateway.services().items() if status.get("listening") for name in ("headless", "outside")),
          f"one of them is served: {list(lab.gateway.services())}")
    # Headless cannot be changed, ExternalName can.
    lab.kubectl.apply(o.service("outside", external_ips=[VIP2]))
    lab.until_open(VIP2)
    equal(set(lab.answered_by(9, VIP2)), set(BACKENDS), "backends that answer")
    lab.kubectl.patch("service", "outside", lab.kube_namespace, {"spec": {"type": "ExternalName", "externalName": "www.example.org",
                                                                          "externalIPs": None, "clusterIP": None, "clusterIPs": None}})
    lab.until_closed(VIP2)
    lab.delete("service", "headless", "outside")
    equal(lab.get(VIP, 81).status, 200, "the Service beside them")


@case()
def ports_of_one_service_come_and_go_one_by_one_SVC008(lab):
    o = lab.objects
    two = [{"name": "http", "port": 80, "protocol": "TCP", "targetPort": 9376}, {"name": "echo", "port": 80, "protocol": "UDP", "targetPort": 5353}]
    http, echo = o.backends("web", port_name="http"), o.backends("web", name="web-2", port_name="echo", port=5353, protocol="UDP")
    lab.start(o.service("web", external_ips=[VIP], ports=two), http, echo, wait_for=["web:http/tcp", "web:echo/udp"])
    equal(lab.get().status, 200, "TCP")
    equal(lab.echo(VIP, 80)[2], b"hello", "UDP")
    # apply merges by port number, and cannot distinguish the two
    lab.patch("web", {"spec": {"ports": two[:1]}})
    until("the UDP port is gone", lambda: lab.key("web:echo/udp") not in lab.gateway.services(), 30)
    equal(lab.get().status, 200, "TCP without UDP")


@case()
def an_ipv6_service_has_slices_of_its_own_family_EP008(lab):
    needs(lab, (1, 21), "IPv6 beside IPv4")
    o = lab.objects
    lab.start(o.service("web", external_ips=[VIP, VIP_6], ipFamilyPolicy="RequireDualStack", ipFamilies=["IPv4", "IPv6"]), o.backends("web"),
              o.backends("web", name="web-6", family="IPv6"), wait_for=["web/tcp"])
    lab.until_open(VIP_6)
    equal(set(lab.answered_by(9, VIP_6)), set(BACKENDS), "backends that answer over IPv6")
    lab.delete("endpointslice", "web-6")
    until("IPv6 is refused", lambda: lab.connection_outcome(VIP_6, 80) == "refused", 30)
    equal(set(lab.answered_by(9)), set(BACKENDS), "backends that answer over IPv4")


@case()
def six_hundred_services_are_more_than_a_page_and_all_are_served_APISYNC002(lab):
    """A page holds 500 objects. They exist before penstock-sync starts, and one more is created while it
    lists."""
    o, first_port, count = lab.objects, 1000, 600
    objects = [entry for i in range(count) for entry in (
        o.service(f"web-{i}", first_port + i, external_ips=[VIP]), o.backends(f"web-{i}", [f"backend-{1 + i % 3}"]))]
    began = time.monotonic()
    bulk.create(lab.cluster, objects)
    created = time.monotonic() - began
    lab.start_gateway()
    began = time.monotonic()
    lab.start_sync("--kubeconfig", lab.cluster.file("sync.kubeconfig"))
    lab.apply(o.service("late", 80, external_ips=[VIP]), o.backends("late"))

    def served():
        return sum(bool(status.get("listening")) for key, status in lab.gateway.services().items() if key.startswith(f"{lab.kube_namespace}/"))
    until("all are served", lambda: served() == count + 1, 120, 0.2)
    lab.remarks.append(f"created in {created:.1f} s, served {time.monotonic() - began:.1f} s after the start of penstock-sync")
    for i in (0, 1, 2, 499, 500, 501, count - 1):
        equal(lab.get(VIP, first_port + i).backend, f"backend-{1 + i % 3}", f"backend of web-{i}")
    bulk.delete(lab.cluster, objects)
    until("all but one are withdrawn", lambda: served() == 1, 120, 0.2)
    equal(lab.get().status, 200, "the one that stays")
