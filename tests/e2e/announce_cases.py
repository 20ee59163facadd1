# SPDX-License-Identifier: Apache-2.0
"""VIPs announced as kernel routes (--vip-presence routes). The client's namespace is the router: it has static
routes to the VIPs, so that each case can follow packets and kernel routes apart."""
import json
import time

from fixture import VIP, VIP2, VIP_6, case, check, equal, until
from lab import network as net
from lab.network import inside
from manifests import endpoints, service
from route_monitor import Monitor


def web(vips=(VIP, VIP_6), **more):
    return service("web", 80, external_ips=list(vips), families=("IPv4", "IPv6"), **more)


SLICES = (endpoints("web"), endpoints("web", family="IPv6"))


def start(lab, *objects, options=()):
    lab.gateway.more_options = ["--vip-presence", "routes", *options]
    lab.start(*objects)


def announced(lab):
    """(VIP, twin, metric) of the gateway's routes of protocol 80."""
    with inside(lab.network.namespace("gateway")):
        routes = [route for family in ("-4", "-6")
                  for route in json.loads(net.command("ip", "-json", family, "route", "show", "proto", "80") or "[]")]
    return sorted((route["dst"], route["dev"], route.get("metric", 0)) for route in routes)


def becomes(lab, *wanted):
    until(f"the routes are {wanted}", lambda: announced(lab) == sorted(wanted), patience_s=15)


def view(lab, vip=VIP):
    return next(row for row in lab.gateway.json("get", "vips") if row["address"] == vip)


@case()
def routes_follow_the_services_in_force_PRESENCE001_PRESENCE002_LB018(lab):
    start(lab)
    equal(announced(lab), [], "routes before a Service is served")
    lab.apply(web(), *SLICES)
    becomes(lab, (VIP, "uplink0", 100), (VIP_6, "uplink0", 100))
    equal(lab.get(VIP).status, 200, "through the gateway")
    equal(lab.get(VIP_6).status, 200, "through the gateway, IPv6")
    equal((view(lab)["presence"], view(lab)["metric"], view(lab)["twin"]), ("route", 100, "uplink0"), "get vips")
    check(not [route for route in lab.gateway.json("get", "routes") if route["destination"].startswith(VIP)],
          "workers have a route that announces a VIP")
    for vip in (VIP, net.bracketed(VIP_6)):
        done = lab.network.run("gateway", "curl", "-s", "-o", "/dev/null", "-m", "10", "-w", "%{http_code}", f"http://{vip}/")
        equal(done.stdout, "200", f"a program on the gateway host that asks {vip}")
    lab.apply(web(vips=[VIP2]), *SLICES)
    becomes(lab, (VIP2, "uplink0", 100))
    lab.apply(*SLICES)
    becomes(lab)


@case()
def a_lost_link_a_crash_and_a_stop_withdraw_the_routes_PRESENCE002(lab):
    start(lab, web(vips=[VIP]), *SLICES)
    becomes(lab, (VIP, "uplink0", 100))
    with Monitor(lab.network.namespace("gateway")) as monitor:
        down_at = time.time()
        lab.network.ip("client", "link set eth0 down")
        becomes(lab)
    equal(view(lab)["presence"], "none", "get vips")
    check("down or removed" in view(lab)["reason"], f"reason: {view(lab)['reason']}")
    equal(monitor.of(VIP), [("deleted", 100)], "changes of the routes")
    lab.remarks.append(f"withdrawn {(monitor.changes[0][0] - down_at) * 1000:.0f} ms after the command that took the link down")
    lab.network.ip("client", "link set eth0 up")
    becomes(lab, (VIP, "uplink0", 100))
    lab.gateway.end_daemon()
    becomes(lab)
    lab.gateway.start_daemon()
    becomes(lab, (VIP, "uplink0", 100))
    with Monitor(lab.network.namespace("gateway")) as monitor:
        lab.gateway.daemon.terminate()
        equal(lab.gateway.daemon.wait(timeout=20), 0, "exit code")
    equal(monitor.of(VIP), [("deleted", 100)], "changes: penstockd deletes the route before its twin ends, which the kernel does not report")
    equal(announced(lab), [], "routes after a stop")


@case()
def a_foreign_route_is_left_alone_and_reported_PRESENCE002(lab):
    start(lab)
    lab.network.ip("gateway", f"route add {VIP}/32 dev cluster0 proto 99 metric 100\nroute add {VIP2}/32 dev cluster0 proto 99 metric 20")
    lab.apply(web(vips=[VIP, VIP2]), *SLICES)
    becomes(lab, (VIP2, "uplink0", 100))
    until("get vips has the conflict", lambda: view(lab).get("reason") == "another route has this prefix and metric", patience_s=15)
    check(view(lab, VIP2)["foreign_route"], "the foreign route of another metric")
    until("the Service has the notice", lambda: "VIPRouteConflict" in lab.gateway.ctl("describe", "service", "web").stdout, patience_s=15)
    equal(lab.get(VIP).status, 200, "the VIP itself")
    with inside(lab.network.namespace("gateway")):
        foreign = json.loads(net.command("ip", "-json", "route", "show", "proto", "99"))
    equal(len(foreign), 2, "foreign routes")
    lab.network.ip("gateway", f"route del {VIP}/32 dev cluster0 proto 99 metric 100")
    becomes(lab, (VIP, "uplink0", 100), (VIP2, "uplink0", 100))


@case()
def a_drain_prefers_others_then_withdraws_then_waits_for_flows_PRESENCE003(lab):
    start(lab, web(vips=[VIP]), *SLICES, options=["--healthz", "127.0.0.1:10257"])
    becomes(lab, (VIP, "uplink0", 100))

    def healthz():
        return lab.network.run("gateway", "curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "http://127.0.0.1:10257/healthz").stdout
    until("healthy", lambda: healthz() == "200", patience_s=15)
    lab.make_file("large", 8_000_000)
    with Monitor(lab.network.namespace("gateway")) as monitor, lab.tcp_socket(VIP, 80, timeout_s=60) as download:
        download.send(b"GET /slow/large HTTP/1.0\r\n\r\n")
        received = len(download.recv(1000))
        equal(lab.gateway.ctl("drain").returncode, 0, "exit code of drain")
        equal(healthz(), "503", "health at once")
        becomes(lab, (VIP, "uplink0", 900))
        equal(lab.gateway.ctl("undrain").returncode, 0, "exit code of undrain")
        becomes(lab, (VIP, "uplink0", 100))
        equal(healthz(), "200", "health after undrain")
        lab.gateway.ctl("drain")
        becomes(lab)
        while chunk := download.recv(1 << 16):
            received += len(chunk)
    check(received > 8_000_000, f"a flow from before the drain ended after {received} bytes")
    equal(monitor.of(VIP), [("added", 900), ("deleted", 100), ("added", 100), ("deleted", 900), ("added", 900), ("deleted", 100),
                            ("deleted", 900)], "changes of the routes")
    done = lab.gateway.ctl("drain", "--timeout", "60")
    equal(done.returncode, 0, f"drain that waits: {done.stderr}")
    check("no connection is open" in lab.gateway.ctl("status").stdout, "status of a drain that is done")
    equal(lab.gateway.ctl("undrain").returncode, 0, "exit code of undrain")
    becomes(lab, (VIP, "uplink0", 100))
    equal(lab.get(VIP).status, 200, "afterwards")


@case()
def a_stop_with_drain_on_stop_waits_for_the_last_flow_PRESENCE003(lab):
    start(lab, web(vips=[VIP]), *SLICES, options=["--drain-on-stop", "120"])
    becomes(lab, (VIP, "uplink0", 100))
    lab.make_file("large", 8_000_000)
    with Monitor(lab.network.namespace("gateway")) as monitor:
        with lab.tcp_socket(VIP, 80, timeout_s=60) as download:
            download.send(b"GET /slow/large HTTP/1.0\r\n\r\n")
            received = len(download.recv(1000))
            lab.gateway.daemon.terminate()
            becomes(lab, (VIP, "uplink0", 900))
            check("penstockd stops in" in lab.gateway.ctl("status").stdout, "status does not show the stop")
            while chunk := download.recv(1 << 16):
                received += len(chunk)
        equal(lab.gateway.daemon.wait(timeout=90), 0, "exit code")
    check(received > 8_000_000, f"a flow from before the stop ended after {received} bytes")
    equal(monitor.of(VIP), [("added", 900), ("deleted", 100), ("deleted", 900)], "changes of the routes")
    equal(announced(lab), [], "routes after the stop")
