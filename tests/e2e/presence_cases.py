# SPDX-License-Identifier: Apache-2.0
"""VIPs inside the uplink's own subnet: clients on the link resolve them by ARP and ND, without a route
(--vip-presence)."""
import json

from fixture import case, check, equal, until
from lab import network as net
from lab.network import inside
from manifests import endpoints, service

VIP_ON_LINK = "10.80.1.80"
VIP_ON_LINK_6 = "fd00:80:1::80"
OTHER_VIP = "10.80.1.81"


def web(name="web", port=80, vips=(VIP_ON_LINK,), **more):
    return service(name, port, ingress_ips=list(vips), **more)


def start(lab, *objects, options=()):
    lab.gateway.more_options = ["--vip-presence", "on", *options]
    lab.start(*objects)


def on_uplink(lab):
    """The twin's addresses."""
    with inside(lab.network.namespace("gateway")):
        shown = json.loads(net.command("ip", "-json", "address", "show", "dev", "uplink0"))
    return {entry["local"] for entry in shown[0]["addr_info"]}


def becomes_present(lab, vip=VIP_ON_LINK):
    until(f"{vip} is on the twin", lambda: vip in on_uplink(lab), patience_s=15)


def becomes_absent(lab, vip=VIP_ON_LINK):
    until(f"{vip} is on the twin no more", lambda: vip not in on_uplink(lab), patience_s=15)


def nobody_answers_for(lab, vip=VIP_ON_LINK):
    lab.network.ip("client", "neigh flush dev eth0")
    equal(lab.connection_outcome(vip, 80, timeout_s=10), "No route to host", f"a client that asks the link for {vip}")


def ping(lab, vip):
    return lab.network.run("client", "ping", "-c", "1", "-W", "5", vip).returncode


@case(driver=("af_packet", "af_xdp"))
def a_client_on_the_link_finds_the_vip_while_any_service_has_it_LB018(lab):
    slices = [endpoints("web"), endpoints("web", family="IPv6"), endpoints("second")]
    dual = {"vips": (VIP_ON_LINK, VIP_ON_LINK_6), "families": ("IPv4", "IPv6")}
    start(lab, web(**dual), web("second", 81), *slices)
    for vip in (VIP_ON_LINK, VIP_ON_LINK_6):
        becomes_present(lab, vip)
        equal(lab.get(vip).status, 200, f"{vip} by ARP or ND")
        equal(ping(lab, vip), 0, f"ping to {vip}")
        equal(lab.connection_outcome(vip, 8080), "silence", f"a port of {vip} that no Service declares")
    addresses = [address for port in lab.gateway.json("get", "ports") for address in port["addresses"]]
    check(f"{net.UPLINK}/24" in addresses and f"{VIP_ON_LINK}/32" not in addresses, f"the host's own addresses: {addresses}")

    lab.apply(web("second", 81), *slices)
    becomes_absent(lab, VIP_ON_LINK_6)
    check(VIP_ON_LINK in on_uplink(lab), "the VIP has gone with the first of its Services")
    equal(lab.get(VIP_ON_LINK, 81).status, 200, "the Service that is left")
    lab.apply(*slices)
    becomes_absent(lab)
    nobody_answers_for(lab)
    check(net.UPLINK in on_uplink(lab), "the twin's own address has gone too")


@case()
def drain_withdraws_the_vip_and_keeps_the_traffic_DRAIN006_LB018(lab):
    start(lab, web(), endpoints("web"))
    becomes_present(lab)
    lab.make_file("large", 8_000_000)
    with lab.tcp_socket(VIP_ON_LINK, 80, timeout_s=30) as download:
        download.send(b"GET /slow/large HTTP/1.0\r\n\r\n")
        received = len(download.recv(1000))
        equal(lab.gateway.ctl("drain").returncode, 0, "exit code of drain")
        becomes_absent(lab)
        while chunk := download.recv(1 << 16):
            received += len(chunk)
    check(received > 8_000_000, f"a flow from before the drain ended after {received} bytes")
    nobody_answers_for(lab)
    equal(lab.gateway.ctl("undrain").returncode, 0, "exit code of undrain")
    becomes_present(lab)
    equal(lab.get(VIP_ON_LINK).status, 200, "afterwards")


@case()
def without_a_local_endpoint_the_vip_is_left_to_others_LB018_ETP003(lab):
    start(lab, web(policy="Local", health_check_port=31234), endpoints("web"))
    becomes_present(lab)
    lab.apply(web(policy="Local", health_check_port=31234), endpoints("web", node="other-node"))
    becomes_absent(lab)
    nobody_answers_for(lab)
    lab.apply(web(policy="Local", health_check_port=31234), endpoints("web"))
    becomes_present(lab)
    equal(lab.get(VIP_ON_LINK).status, 200, "with a local endpoint again")
    lab.apply(web(), endpoints("web", []))
    until("clients get the reject of policy Cluster", lambda: lab.connection_outcome(VIP_ON_LINK, 80) == "refused", patience_s=15)
    check(VIP_ON_LINK in on_uplink(lab), "policy Cluster without endpoints keeps its VIP")


@case()
def withdraw_empty_withdraws_a_vip_without_any_endpoint_LB018(lab):
    start(lab, web(), endpoints("web"), options=["--withdraw-empty"])
    becomes_present(lab)
    lab.apply(web(), endpoints("web", []))
    becomes_absent(lab)


def node(labels=None, **conditions):
    """The gateway's own Node; conditions as NetworkUnavailable="True"."""
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "edge-1", "labels": labels or {}},
            "status": {"conditions": [{"type": kind, "status": status} for kind, status in conditions.items()]}}


def withheld(lab):
    """The reason in the status; "" if none."""
    lines = lab.gateway.ctl("status").stdout.splitlines()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("VIPs withheld:")), "")


def withheld_metric(lab):
    lines = lab.network.run("gateway", "curl", "-s", "http://127.0.0.1:9105/metrics").stdout.splitlines()
    return next(line.split()[-1] for line in lines if line.startswith("penstock_vips_withheld "))


@case()
def an_excluded_node_and_one_without_network_withdraw_the_vip_PRESENCE005(lab):
    served = [web(), endpoints("web")]
    start(lab, node(Ready="True"), *served)
    becomes_present(lab)
    equal(withheld(lab), "", "status of a Node that is well")

    label = "node.kubernetes.io/exclude-from-external-load-balancers"
    lab.make_file("large", 8_000_000)
    with lab.tcp_socket(VIP_ON_LINK, 80, timeout_s=30) as download:
        download.send(b"GET /slow/large HTTP/1.0\r\n\r\n")
        received = len(download.recv(1000))
        lab.apply(node({label: ""}, Ready="True"), *served)
        becomes_absent(lab)
        while chunk := download.recv(1 << 16):
            received += len(chunk)
    check(received > 8_000_000, f"a flow from before the label ended after {received} bytes")
    nobody_answers_for(lab)
    equal(withheld(lab), f"Node edge-1 has the label {label}", "status")
    equal(withheld_metric(lab), "1", "penstock_vips_withheld")
    equal(lab.gateway.ctl("status").returncode, 0, "exit code of status: the gateway itself is well")
    for process in (lab.gateway.sync, lab.gateway.daemon):
        process.terminate()
        process.wait(timeout=20)
    lab.gateway.start_daemon()
    until("status has the reason after a restart without a control plane", lambda: withheld(lab) == f"Node edge-1 has the label {label}",
          patience_s=15)
    check(VIP_ON_LINK not in on_uplink(lab), "the last good configuration has forgotten that the Node is excluded")

    lab.gateway.start_sync(lab.manifests)
    lab.apply(node(Ready="True", NetworkUnavailable="False"), *served)
    becomes_present(lab)
    equal(lab.get(VIP_ON_LINK).status, 200, "without the label")
    lab.apply(node(NetworkUnavailable="True"), *served)
    becomes_absent(lab)
    equal(withheld(lab), "Node edge-1 has the condition NetworkUnavailable=True", "status")
    lab.apply(node(NetworkUnavailable="Unknown"), *served)
    becomes_present(lab)
    equal(withheld(lab), "", "status afterwards")
    equal(withheld_metric(lab), "0", "penstock_vips_withheld afterwards")
    equal(lab.get(VIP_ON_LINK).status, 200, "with the network again")


@case()
def neighbours_hear_of_a_vip_that_has_moved_here_LB018(lab):
    start(lab, web("second", 81, [OTHER_VIP]), endpoints("second"))
    becomes_present(lab, OTHER_VIP)
    vips = (VIP_ON_LINK, VIP_ON_LINK_6)
    for vip in vips:  # as if another gateway had owned it until now
        lab.network.ip("client", f"neigh replace {vip} lladdr 02:00:00:00:be:01 dev eth0 nud stale")
    lab.apply(web(vips=vips, families=("IPv4", "IPv6")), endpoints("web"), endpoints("web", family="IPv6"))
    with inside(lab.network.namespace("gateway")):
        mac = json.loads(net.command("ip", "-json", "link", "show", "dev", "uplink0"))[0]["address"]

    def known(vip):
        with inside(lab.network.namespace("client")):
            return json.loads(net.command("ip", "-json", "neigh", "show", "to", vip))[0].get("lladdr")
    for vip in vips:
        until(f"the client knows that {vip} is here", lambda vip=vip: known(vip) == mac, patience_s=15)


@case()
def what_the_operator_put_on_the_twin_stays_and_a_crash_leaves_nothing_LB018(lab):
    start(lab, web(vips=[VIP_ON_LINK, OTHER_VIP]), endpoints("web"))
    becomes_present(lab, OTHER_VIP)
    equal(lab.connection_outcome(OTHER_VIP, 8080), "silence", "other ports of a VIP that is there by presence")
    lab.apply(endpoints("web"))
    becomes_absent(lab, OTHER_VIP)
    lab.network.ip("gateway", f"address add {OTHER_VIP}/32 dev uplink0")
    lab.apply(web(vips=[VIP_ON_LINK, OTHER_VIP]), endpoints("web"))
    becomes_present(lab)
    equal(lab.get(OTHER_VIP).status, 200, "the Service at the operator's address")
    equal(lab.connection_outcome(OTHER_VIP, 8080), "refused", "other ports of the operator's address, which are the host's")
    lab.apply(endpoints("web"))
    becomes_absent(lab)
    check(OTHER_VIP in on_uplink(lab), "the operator's address has gone")

    lab.apply(web(vips=[VIP_ON_LINK]), endpoints("web"))
    becomes_present(lab)
    lab.gateway.end_daemon()
    with inside(lab.network.namespace("gateway")):
        until("the twin has gone with its process", lambda: "uplink0" not in net.command("ip", "link", "show"), patience_s=15)
    lab.gateway.start_daemon()
    becomes_present(lab)
    equal(lab.get(VIP_ON_LINK).status, 200, "after the crash")
