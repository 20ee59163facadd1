# SPDX-License-Identifier: Apache-2.0
"""Two gateways of one Node in front of the same pods: penstockd in one namespace, the kernel as programmed by
kube-proxy in another. The client has an address for each gateway and uses it
to select the gateway:

    client 10.80.1.2 ---- penstockd (edge-1) ----+
           10.80.3.2 ---- kernel, kube-proxy ----+---- switch ---- nodes with pods 10.81.0.0/16, 10.82.0.0/16,
                          (also edge-1)                            10.83.0.0/16
"""
import json
import os
import select
import socket
import subprocess
import sys
import threading

import world as worlds
from cluster_bed import ClusterLab
from fixture import until
from lab import network as net
from lab.network import inside
from probe import probe

PATIENCE_S = 60.0
MARKER, MARKER_IP = "marker", "80.11.12.99"


class OracleLab(ClusterLab):
    logs = (*ClusterLab.logs, "kube-proxy.log")

    def start(self):
        """Starts both gateways without any Service."""
        self.run.reserve_hugepages(self.gateway.memory_mb)
        self.network.build()
        self._start_pods()
        self._make_the_other_gateway()
        for node, zone in (("edge-1", worlds.ZONES[0]), ("edge-2", worlds.ZONES[1])):
            self.kubectl("label", "--overwrite", "node", node, f"topology.kubernetes.io/zone={zone}")
        self.gateway.start_daemon()
        self.route_pods()
        self.start_sync("--kubeconfig", self.cluster.file("sync.kubeconfig"), "--serve-cluster-ips")
        self._start_kube_proxy()

    def show(self, world, number):
        """Applies this world to the cluster. Returns its Services as the API server stores them, once both
        gateways have received it."""
        self.kubectl("delete", "service,endpointslice", "--all", "-n", self.kube_namespace, "--wait=false")
        self.kubectl.apply(*world.slices, *world.services)
        for name, address in world.ingress.items():
            self.cluster.patch_status(self.kube_namespace, name, {"loadBalancer": {"ingress": [{"ip": address}]}})
        # Watches deliver changes in order: a gateway that has the last Service and the last slice has all
        # earlier ones.
        pod = f"10.81.250.{1 + number % 250}"
        self.kubectl.apply(self.objects.slice(MARKER, [pod]), self.objects.service(MARKER, external_ips=[MARKER_IP]))
        marker = worlds.Target("marker", MARKER_IP, 80, "TCP")
        for gateway in (self.through_penstock, self.through_kube_proxy):
            until(f"{gateway.__name__}: world {number} is programmed",
                  lambda gateway=gateway: gateway([marker])[marker].endpoint == f"{pod}:9376", PATIENCE_S, 0.2)
        listed = self.kubectl.json("get", "services", "-n", self.kube_namespace)["items"]
        return [service for service in listed if service["metadata"]["name"] != MARKER]

    def through_penstock(self, targets):
        return probe(self.network, net.CLIENT, targets, net.UPLINK)

    def through_kube_proxy(self, targets):
        return probe(self.network, net.SECOND_CLIENT, targets, net.SECOND_UPLINK)

    def _start_pods(self):
        server = os.path.join(os.path.dirname(os.path.abspath(__file__)), "pod_server.py")
        for role, address in net.BACKENDS.items():
            self.network.start(role, [sys.executable, server, *map(str, worlds.POD_PORTS)], f"{role}-pods.log")
            until(f"pods of {role} answer", lambda role=role, address=address: self._answers(role, address), PATIENCE_S, 0.05)

    def _answers(self, role, address):
        try:
            with inside(self.network.namespace(role)):
                socket.create_connection((address, worlds.POD_PORTS[-1]), timeout=1).close()
            return True
        except OSError:
            return False

    def _make_the_other_gateway(self):
        self.network.add_second_gateway(MARKER_IP)
        self.network.ip("client", f"route del {MARKER_IP}/32\n"
                                  f"route add 10.96.0.0/16 via {net.UPLINK}\n"
                                  f"route add default via {net.SECOND_UPLINK} table 100\n"
                                  f"rule add from {net.SECOND_CLIENT} lookup 100")
        self.network.ip("gateway-2", f"address add {net.SECOND_UPLINK}/24 dev gw-up\naddress add {net.SECOND_CLUSTER}/24 dev gw-cl")
        # Adds a default route, as on a node. Packets that are not translated are then forwarded, and so pass
        # the rules for Services without endpoints.
        self.network.ip("gateway-2", f"route add default via {net.SECOND_CLIENT}")
        for i in range(3):
            self.network.ip("gateway-2", f"route add 10.{81 + i}.0.0/16 via 10.80.2.{11 + i}")
        for key, value in (("ipv4/ip_forward", 1), ("ipv4/conf/all/rp_filter", 0), ("ipv4/conf/gw-up/rp_filter", 0),
                           ("ipv4/conf/gw-cl/rp_filter", 0), ("ipv4/icmp_ratelimit", 0),
                           ("ipv4/conf/all/send_redirects", 0), ("ipv4/conf/gw-up/send_redirects", 0)):
            self.network.sysctl("gateway-2", key, value)

    def _start_kube_proxy(self):
        self._relay = Relay(self.network.namespace("gateway-2"), self.cluster.address, self.cluster.port)
        kubeconfig = self.cluster.write_kubeconfig("proxy", {"token": self.cluster.tokens["admin"]})
        old = self.cluster.version < (1, 21)
        mode = "iptables" if old else "nftables"
        config = {"apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "kind": "KubeProxyConfiguration", "mode": mode,
                  "clientConnection": {"kubeconfig": kubeconfig}, "hostnameOverride": "edge-1", "nodePortAddresses": ["0.0.0.0/0"],
                  "clusterCIDR": "10.82.0.0/15", "healthzBindAddress": "127.0.0.1:10256", "metricsBindAddress": "127.0.0.1:10249",
                  "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
                  mode: {"minSyncPeriod": "100ms", "syncPeriod": "10s"},
                  "featureGates": {"EndpointSliceProxying": True, "ServiceTopology": True} if old else {}}
        with open(self.run.file("kube-proxy.json"), "w") as file:
            json.dump(config, file)
        self._kube_proxy = self.network.start("gateway-2", [self.cluster.server.program("kube-proxy"), "--config",
                                                            self.run.file("kube-proxy.json"), "--v=2"], "kube-proxy.log")

    def end(self):
        if hasattr(self, "_relay"):
            self._relay.stop()
        super().end()


class Relay:
    """Makes a loopback address and port inside a namespace reach the same of the host. kube-proxy and the API
    server both use the loopback address."""

    def __init__(self, namespace, address, port):
        self._place = address, port
        with inside(namespace):
            self._server = socket.create_server(self._place)
        threading.Thread(target=self._accept, daemon=True).start()

    def stop(self):
        self._server.close()

    def _accept(self):
        while True:
            try:
                inner, _ = self._server.accept()
                outer = socket.create_connection(self._place)
            except OSError:
                return
            threading.Thread(target=_pump, args=(inner, outer), daemon=True).start()


def _pump(one, other):
    with one, other:
        while True:
            for ready in select.select([one, other], [], [])[0]:
                try:
                    data = ready.recv(65536)
                    if not data:
                        return
                    (other if ready is one else one).sendall(data)
                except OSError:
                    return


def kube_proxy_runs(server):
    """The reason why kube-proxy does not run, in one line, or None."""
    program = server.program("kube-proxy")
    if not program:
        return f"there is no kube-proxy beside {server.directory}'s kube-apiserver"
    done = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=60)
    return None if done.returncode == 0 else f"{program}: {done.stderr.strip()}"
