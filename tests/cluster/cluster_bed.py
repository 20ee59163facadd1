# SPDX-License-Identifier: Apache-2.0
"""Shared by the cases: the lab of suite e2e, with objects from a real API server instead of a folder."""
import os

from fixture import Lab, Skip, until
from kube_objects import Objects
from lab import gateway as gw
from lab import servers

DEPLOY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/deploy")
RBAC = os.path.join(DEPLOY, "common/rbac.yaml")
POOLS = os.path.join(DEPLOY, "common/addresspool-crd.yaml")
# The oldest API server whose CRDs have rules.
CRD_VERSION = (1, 25)
# Time for a change to be applied: through kubectl, the API server, etcd, a watch, gRPC and a compile, on
# cores that other processes may use.
PATIENCE_S = 30.0


class ClusterLab(Lab):
    """A gateway of its own for each case; the API server and its etcd are shared, and each case has a
    namespace there."""

    def __init__(self, cluster, build, case, number):
        super().__init__(build, case.variant, "cluster")
        self.cluster, self.kubectl = cluster, cluster.admin
        self.kube_namespace = f"case-{number}"
        self.objects = Objects(self.kube_namespace, cluster.version)
        self.kubectl.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.kube_namespace}})

    def start(self, *objects, wait_for=(), options=(), kubeconfig=None):
        """Starts network, servers, penstockd and penstock-sync, and then creates the objects, so that they
        arrive by the watch and not only by the list."""
        self.start_gateway()
        self.start_sync("--kubeconfig", kubeconfig or self.cluster.file("sync.kubeconfig"), *options)
        self.apply(*objects, wait_for=wait_for)

    def start_gateway(self):
        self.build_network()
        servers.start(self.network, self.run)
        self.gateway.start_daemon()

    def start_sync(self, *options, env=None):
        self.gateway.start_sync_of_cluster(*options, env=env)

    def apply(self, *objects, wait_for=()):
        """`kubectl apply`. Returns when these service ports ("web/tcp") are served."""
        if objects:
            self.kubectl.apply(*objects)
        if wait_for:
            self.gateway.until_served({self.key(port) for port in wait_for}, patience_s=PATIENCE_S)

    def start_second_gateway(self, external_ip):
        """penstockd of Node edge-2, which the client reaches under this address."""
        self.network.add_second_gateway(external_ip)
        second = gw.Gateway(self.network, self.run, self.gateway.build, place=gw.SECOND)
        self.run.reserve_hugepages(second.memory_mb)
        second.start_daemon()
        return second

    def install_pools(self):
        """Installs the CRD of AddressPools."""
        if self.cluster.version < CRD_VERSION:
            # no rules in CRDs; and 1.20, built with this Go version, ends in reflect2 at the first custom resource
            raise Skip("custom resources need an API server of 1.25")
        self.kubectl("apply", "-f", POOLS)
        self.kubectl("wait", "--for=condition=Established", "--timeout=60s", "-f", POOLS)

    def remove_pools(self):
        """Removes the CRD with all pools, which belong to no namespace."""
        self.kubectl("delete", "-f", POOLS)

    def key(self, service_port):
        return f"{self.kube_namespace}/{service_port}"

    def patch(self, name, change, kind="service"):
        self.kubectl.patch(kind, name, self.kube_namespace, change)

    def delete(self, kind, *names):
        self.kubectl.delete(kind, *names, namespace=self.kube_namespace)

    def sync_log(self):
        with open(self.run.file("penstock-sync.log"), errors="replace") as log:
            return log.read()

    # The gateway's state.

    def usable_backends(self, service):
        """{"10.81.1.7:9376", ...}: the endpoints for new flows."""
        listed = self.gateway.json("get", "backends")
        return {f"{backend['endpoint']['address']}:{backend['endpoint']['port']}" for backend in listed
                if backend.get("sets") and (backend["service"]["namespace"], backend["service"]["name"]) == (self.kube_namespace, service)}

    def until_backends(self, service, addresses):
        """Waits until these are exactly the endpoints for new flows."""
        wanted = {f"{address}:9376" for address in addresses}
        until(f"{len(wanted)} backends of {service}", lambda: self.usable_backends(service) == wanted, PATIENCE_S, 0.05)

    def until_open(self, address, port=80):
        until(f"{address}:{port} is open", lambda: self.connection_outcome(address, port, 0.5) == "open", PATIENCE_S)

    def until_closed(self, address, port=80):
        until(f"{address}:{port} is closed", lambda: self.connection_outcome(address, port, 0.3) != "open", PATIENCE_S)

    # Thousands of endpoints: each backend answers for a whole network.

    def pod_addresses(self, count, first=0):
        """Addresses of "pods", distributed over the backends in turn. 10.81.0.0/16 is backend-1's, 10.82
        backend-2's, 10.83 backend-3's."""
        return [f"10.{81 + i % 3}.{i // 3 // 200}.{1 + i // 3 % 200}" for i in range(first, first + count)]

    def route_pods(self):
        """Adds the routes of pods to nodes to the gateway's kernel, as a CNI does."""
        for i, role in enumerate(("backend-1", "backend-2", "backend-3")):
            network = f"10.{81 + i}.0.0/16"
            self.network.ip(role, f"route add local {network} dev lo")
            self.network.ip("gateway", f"route add {network} via 10.80.2.{11 + i} dev cluster0")

    def refuse_new_connections_to(self, addresses):
        """Rejects new connections, as a pod does that has ended; existing connections may finish. Each
        attempt is counted."""
        by_role = {}
        for address in addresses:
            by_role.setdefault(f"backend-{int(address.split('.')[1]) - 80}", []).append(address)
        for role, gone in by_role.items():
            rules = ["add table inet gone", "add chain inet gone in { type filter hook input priority 0; }",
                     *(f"add rule inet gone in ip daddr {address} tcp flags & (syn | ack) == syn counter reject with tcp reset" for address in gone)]
            loaded = self.network.run(role, "nft", "-f", "-", stdin="\n".join(rules) + "\n")
            if loaded.returncode != 0:
                raise RuntimeError(f"nft in {role}: {loaded.stderr.strip()}")

    def server_address(self, address, port=80):
        """The answering pod, from its answer."""
        return self.get(address, port, "/server").body.decode().strip()


def needs(lab, version, what):
    if lab.cluster.version < version:
        raise Skip(f"{what} came with Kubernetes {version[0]}.{version[1]}")
