# SPDX-License-Identifier: Apache-2.0
"""Kubernetes objects for the cases, written as JSON, which is valid YAML; docs/examples holds hand-written
YAML."""
import json
import zlib

from lab.network import BACKENDS, BACKENDS6


def service(name, port=80, *, protocol="TCP", target_port=9376, external_ips=(), ingress_ips=(), node_port=None, policy="Cluster",
            source_ranges=(), annotations=None, families=("IPv4",), affinity_timeout_s=None, health_check_port=None):
    kind = "LoadBalancer" if ingress_ips else "NodePort" if node_port else "ClusterIP"
    digest = zlib.crc32(name.encode())
    cluster_ips = {"IPv4": f"10.96.{digest >> 8 & 255}.{digest & 255}", "IPv6": f"fd00:96::{digest & 65535:x}"}
    spec = {"type": kind, "clusterIP": cluster_ips[families[0]], "clusterIPs": [cluster_ips[family] for family in families],
            "ipFamilies": list(families),
            "ports": [{"port": port, "protocol": protocol, "targetPort": target_port, **({"nodePort": node_port} if node_port else {})}]}
    if external_ips:
        spec["externalIPs"] = list(external_ips)
    if kind != "ClusterIP" or external_ips:
        spec["externalTrafficPolicy"] = policy
    if health_check_port:
        spec["healthCheckNodePort"] = health_check_port
    if source_ranges:
        spec["loadBalancerSourceRanges"] = list(source_ranges)
    if affinity_timeout_s:
        spec["sessionAffinity"] = "ClientIP"
        spec["sessionAffinityConfig"] = {"clientIP": {"timeoutSeconds": affinity_timeout_s}}
    made = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": "default", "annotations": annotations or {}},
            "spec": spec}
    if ingress_ips:
        made["status"] = {"loadBalancer": {"ingress": [{"ip": ip} for ip in ingress_ips]}}
    return made


def endpoints(service_name, backends=tuple(BACKENDS), *, port=9376, protocol="TCP", node="edge-1", family="IPv4"):
    """The EndpointSlice of a Service in one family: these backends, all on one node."""
    addresses = {"IPv4": BACKENDS, "IPv6": BACKENDS6}[family]
    return {"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": family,
            "metadata": {"name": f"{service_name}-{family.lower()}", "namespace": "default",
                         "labels": {"kubernetes.io/service-name": service_name}},
            "ports": [{"name": "", "port": port, "protocol": protocol}],
            "endpoints": [{"addresses": [addresses[name]], "conditions": {"ready": True}, "nodeName": node} for name in backends]}


def text_of(objects):
    return "".join(f"---\n{entry if isinstance(entry, str) else json.dumps(entry, indent=1)}\n" for entry in objects)


def service_ports_of(objects):
    """{"default/web/tcp", ...} as gateway.key_of names them."""
    return {f"{entry['metadata']['namespace']}/{entry['metadata']['name']}/{port['protocol'].lower()}"
            for entry in objects if isinstance(entry, dict) and entry["kind"] == "Service" for port in entry["spec"]["ports"]}
