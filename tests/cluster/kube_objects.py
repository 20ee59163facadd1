# SPDX-License-Identifier: Apache-2.0
"""Objects as users write them, without the fields that an API server fills in (clusterIP, families, node
ports)."""
from lab.network import BACKENDS, BACKENDS6

HTTP_PORT, ECHO_PORT = 9376, 5353


class Objects:
    def __init__(self, namespace, version):
        self._namespace, self._version = namespace, version

    def service(self, name, port=80, *, kind="ClusterIP", protocol="TCP", target_port=HTTP_PORT, external_ips=(), node_port=None, ports=None,
                **spec):
        entry = {"port": port, "protocol": protocol, "targetPort": target_port, **({"nodePort": node_port} if node_port else {})}
        made = {"type": kind, "ports": ports or [entry], **spec}
        if external_ips:
            made["externalIPs"] = list(external_ips)
        return {"apiVersion": "v1", "kind": "Service", "metadata": self._metadata(name), "spec": made}

    def slice(self, service, addresses, *, name=None, port=HTTP_PORT, protocol="TCP", port_name="", family="IPv4", node="edge-1", not_ready=(),
              terminating=()):
        """An EndpointSlice in this API server's version."""
        endpoints = [self._endpoint(address, node, address not in not_ready and address not in terminating, address in terminating)
                     for address in addresses]
        old = self._version < (1, 21)
        return {"apiVersion": "discovery.k8s.io/v1beta1" if old else "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": family,
                "metadata": self._metadata(name or f"{service}-1", {"kubernetes.io/service-name": service}),
                "ports": [{"name": port_name, "port": port, "protocol": protocol}], "endpoints": endpoints}

    def backends(self, service, names=tuple(BACKENDS), *, family="IPv4", **more):
        addresses = {"IPv4": BACKENDS, "IPv6": BACKENDS6}[family]
        return self.slice(service, [addresses[name] for name in names], family=family, **more)

    def _endpoint(self, address, node, ready, terminating):
        conditions = {"ready": ready}
        # before 1.20 only "ready" existed; 1.20 drops the other conditions unless a feature gate is on
        if terminating:
            conditions |= {"serving": True, "terminating": True}
        where = {"topology": {"kubernetes.io/hostname": node}} if self._version < (1, 21) else {"nodeName": node}
        return {"addresses": [address], "conditions": conditions, **where}

    def _metadata(self, name, labels=None):
        return {"name": name, "namespace": self._namespace, **({"labels": labels} if labels else {})}
