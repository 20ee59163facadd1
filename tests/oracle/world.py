# SPDX-License-Identifier: Apache-2.0
"""Random Services, EndpointSlices and settings, as an API server of this version accepts them. A world is a
function of its seed. Cases that kube-proxy leaves undefined are excluded: two Services that claim one
tuple."""
import json
import random

from probe import Target

POD_PORTS = (9376, 8080, 9090)
ZONES = ("zone-a", "zone-b")
SERVICE_PORTS = (53, 80, 443, 8443, 9000)


class World:
    def __init__(self, seed, namespace, version, pod_addresses):
        self._random = random.Random(seed)
        self._namespace, self._version = namespace, version
        self._pods = list(pod_addresses)
        self.services, self.slices, self.ingress = [], [], {}
        # The number of endpoints, by Service, that one client may reach. Affinity keeps its first endpoint,
        # except for a frontend that must be answered on this node, where a second one is chosen.
        self.with_affinity = {}
        self.closed_to_client = set()  # Target.what of frontends whose source ranges exclude the client
        for number in range(10):
            self._add_service(number)

    def targets(self, service):
        """All frontends, and next to each a port that is not declared. `service` as the API server stored
        it."""
        name, spec = service["metadata"]["name"], service["spec"]
        places = [("external IP", address) for address in spec.get("externalIPs", [])]
        places += [("ClusterIP", spec["clusterIP"])] if spec.get("clusterIP") not in (None, "", "None") else []
        places += [("LB IP", self.ingress[name])] if name in self.ingress else []
        for port in spec.get("ports", []):
            for place, address in places:
                yield Target(f"{name} {place}", address, port["port"], port["protocol"])
            if port.get("nodePort"):
                yield Target(f"{name} NodePort", "node", port["nodePort"], port["protocol"])
        for place, address in places:
            if place != "ClusterIP":
                yield Target(f"{name} {place}, undeclared port", address, 7, "TCP")

    def text_of(self, name):
        """The settings of a Service in this world, to explain a difference."""
        lines = [json.dumps(service["spec"]) for service in self.services if service["metadata"]["name"] == name]
        for entry in self.slices:
            if entry["metadata"]["labels"]["kubernetes.io/service-name"] == name:
                lines += [f"{entry['metadata']['name']} {json.dumps(endpoint)}" for endpoint in entry["endpoints"]]
        return "\n".join(f"    {line}" for line in lines)

    def _maybe(self, probability):
        return self._random.random() < probability

    def _add_service(self, number):
        draw, name = self._random, f"svc-{number}"
        kind = draw.choice(("ClusterIP", "NodePort", "LoadBalancer", "LoadBalancer"))
        declared = draw.sample(SERVICE_PORTS, draw.choice((1, 1, 2)))
        protocols = [draw.choice(("TCP", "TCP", "UDP")) for _ in declared]
        if self._version < (1, 26):
            # LoadBalancers of several protocols were added in a later version
            protocols = protocols[:1] * len(declared)
        ports = [{"name": f"p{port}", "port": port, "protocol": protocol, "targetPort": 9376} for port, protocol in zip(declared, protocols)]
        spec = {"type": kind, "ports": ports}
        if kind == "ClusterIP" or self._maybe(0.3):
            spec["externalIPs"] = [f"80.11.12.{100 + number}"]
        if kind != "ClusterIP" or (spec.get("externalIPs") and self._version >= (1, 26)):
            spec["externalTrafficPolicy"] = draw.choice(("Cluster", "Local"))
        if self._version >= (1, 26):
            spec["internalTrafficPolicy"] = draw.choice(("Cluster", "Cluster", "Local"))
        if self._maybe(0.25):
            spec["sessionAffinity"] = "ClientIP"
            self.with_affinity[name] = 2 if spec.get("externalTrafficPolicy") == "Local" else 1
        labels = {}
        if kind == "LoadBalancer":
            self.ingress[name] = f"203.0.113.{100 + number}"
            if self._maybe(0.4):
                spec["loadBalancerSourceRanges"] = draw.choice((["10.80.0.0/16"], ["192.0.2.0/24"], ["192.0.2.0/24", "10.80.0.0/14"]))
                if spec["loadBalancerSourceRanges"] == ["192.0.2.0/24"]:
                    self.closed_to_client.add(f"{name} LB IP")
        elif self._maybe(0.1):
            labels["service.kubernetes.io/service-proxy-name"] = "another"
        if self._version < (1, 22) and self._maybe(0.4) and spec.get("externalTrafficPolicy") != "Local":
            spec["topologyKeys"] = draw.choice((["kubernetes.io/hostname"], ["kubernetes.io/hostname", "*"], ["topology.kubernetes.io/zone"],
                                                ["topology.kubernetes.io/zone", "*"], ["example.com/rack", "kubernetes.io/hostname"]))
        self.services.append({"apiVersion": "v1", "kind": "Service", "spec": spec,
                              "metadata": {"name": name, "namespace": self._namespace, "labels": labels}})
        self._add_slices(name, ports)

    def _add_slices(self, name, ports):
        draw = self._random
        count = draw.choice((0, 1, 2, 3, 4))
        readiness = draw.choice(("ready", "ready", "mixed", "terminating", "not ready"))
        hinted = self._version >= (1, 26) and self._maybe(0.4)
        endpoints = [self._endpoint(readiness, hinted) for _ in range(count)]
        # A controller may split slices anywhere, and a moving endpoint is in two of them for a moment.
        cut = draw.randint(0, count)
        parts = [endpoints[:cut], endpoints[cut:]]
        if endpoints and self._maybe(0.2):
            parts[0] = parts[0] + parts[1][:1]
        numbers = {port["name"]: draw.choice(POD_PORTS) for port in ports}
        for i, part in enumerate(parts):
            if part:
                self.slices.append(self._slice(f"{name}-{i}", name, part, [
                    {"name": port["name"], "port": numbers[port["name"]], "protocol": port["protocol"]} for port in ports]))

    def _endpoint(self, readiness, hinted):
        draw = self._random
        node = draw.choice(("edge-1", "edge-2"))
        made = {"addresses": [self._pods.pop()]}
        if self._version < (1, 21):
            made["topology"] = {"kubernetes.io/hostname": node, "topology.kubernetes.io/zone": ZONES[node == "edge-2"]}
            made["conditions"] = {"ready": readiness == "ready" or (readiness == "mixed" and self._maybe(0.5))}
            return made
        made |= {"nodeName": node, "zone": ZONES[node == "edge-2"], "conditions": self._conditions(readiness)}
        if hinted and self._maybe(0.9):
            made["hints"] = {"forZones": [{"name": draw.choice(ZONES)}]}
        return made

    def _conditions(self, readiness):
        if readiness == "mixed":
            readiness = self._random.choice(("ready", "terminating", "not ready", "starting"))
        return {"ready": {"ready": True, "serving": True, "terminating": False},
                "terminating": {"ready": False, "serving": True, "terminating": True},
                "starting": {"ready": False, "serving": True, "terminating": False},
                "not ready": {"ready": False, "serving": False, "terminating": self._maybe(0.5)}}[readiness]

    def _slice(self, name, service, endpoints, ports):
        old = self._version < (1, 21)
        return {"apiVersion": "discovery.k8s.io/v1beta1" if old else "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
                "metadata": {"name": name, "namespace": self._namespace, "labels": {"kubernetes.io/service-name": service}},
                "ports": ports, "endpoints": endpoints}
