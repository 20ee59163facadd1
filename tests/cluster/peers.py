# SPDX-License-Identifier: Apache-2.0
"""Components of other projects in the same cluster: MetalLB's controller, external-dns, and BIND as its DNS
server. Each runs on the host, at a loopback address, and ends with the case."""
import base64
import os
import secrets
import shutil
import subprocess

from cluster_bed import PATIENCE_S
from fixture import Skip, check, until
from testbed.api_servers import NotToBeHad
from testbed.cluster import free_ports
from testbed.go_programs import EXTERNAL_DNS, METALLB

_folders, _why_not = {}, {}


def obtain(cases, deadline):
    """Builds the programs that these cases need, before the first case: the time for building must not count
    as time of cases. Without a program, its cases are skipped."""
    for program in (METALLB, EXTERNAL_DNS):
        if any(_mark(program) in case.name for case in cases):
            try:
                _folders[program.name] = program.obtain(deadline)
            except NotToBeHad as why:
                _why_not[program.name] = f"{program.name} {program.version}: {why}"


def _mark(program):
    """The part of a case's name that says which program it needs."""
    return program.name.lower().replace("-", "_")


def _path(program, file):
    if program.name not in _folders:
        raise Skip(_why_not.get(program.name, f"{program.name} was not built"))
    return os.path.join(_folders[program.name], file)


class MetalLb:
    """MetalLB's controller. It serves Services of one class, and has no speaker: nothing is announced."""
    API = "metallb.io"
    # Name in the plural, kind, and versions, the newest last.
    KINDS = (("ipaddresspools", "IPAddressPool", ("v1beta1",)), ("communities", "Community", ("v1beta1",)),
             ("configurationstates", "ConfigurationState", ("v1beta1",)),
             # Only looked up, for its cache.
             ("bfdprofiles", "BFDProfile", ("v1beta1",)), ("bgpadvertisements", "BGPAdvertisement", ("v1beta1",)),
             ("bgppeers", "BGPPeer", ("v1beta1", "v1beta2")), ("l2advertisements", "L2Advertisement", ("v1beta1",)),
             ("servicebgpstatuses", "ServiceBGPStatus", ("v1beta1",)))

    def __init__(self, lab, namespace, service_class):
        self._lab, self.namespace, self._class = lab, namespace, service_class
        self._program = _path(METALLB, "controller")
        self._process = None
        self.version = METALLB.version

    def install(self):
        """Creates the CRDs with the least schema that an API server accepts, and what the controller reads at
        its start: its own Pod."""
        kubectl = self._lab.kubectl
        kubectl.apply(*(self._crd(*kind) for kind in self.KINDS))
        for plural, _, _ in self.KINDS:
            kubectl("wait", "--for=condition=Established", "--timeout=60s", f"crd/{plural}.{self.API}")
        kubectl.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}},
                       {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "controller", "namespace": self.namespace},
                        "spec": {"containers": [{"name": "controller", "image": "none"}]}})

    def remove(self):
        self.stop()
        self._lab.kubectl("delete", "--ignore-not-found", *(f"crd/{plural}.{self.API}" for plural, _, _ in self.KINDS))

    def _crd(self, plural, kind, versions):
        anything = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
        return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": f"{plural}.{self.API}"},
                "spec": {"group": self.API, "scope": "Namespaced",
                         "names": {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"},
                         "versions": [{"name": version, "served": True, "storage": version == versions[-1], "schema": anything,
                                       "subresources": {"status": {}}} for version in versions]}}

    def start(self):
        cluster = self._lab.cluster
        environment = {**os.environ, "KUBECONFIG": cluster.file("admin.kubeconfig"), "METALLB_BGP_TYPE": "native"}
        # Port 0 is any free one: both are opened on every address.
        self._process = self._lab.run.spawn([self._program, "--namespace", self.namespace, "--pod-name", "controller", "--lb-class", self._class,
                                             "--webhook-mode", "disabled", "--port", "0", "--health-probe-port", "0"],
                                            "metallb.log", environment)

    def stop(self):
        if self._process:
            self._process.kill()
            self._process.wait()
            self._process = None

    def check_runs(self):
        check(self._process.poll() is None, f"MetalLB's controller ended: {self._last_words()}")

    def _last_words(self):
        with open(self._lab.run.file("metallb.log"), errors="replace") as log:
            return "".join(log.readlines()[-5:])


class NameServer:
    """BIND with one zone, which holders of its key may change and transfer."""
    KEY = "external-dns-key"

    def __init__(self, lab, zone):
        self._lab, self.zone = lab, zone
        self.program = shutil.which("named") or shutil.which("named", path="/usr/sbin")
        if not self.program or not shutil.which("dig"):
            raise Skip("there is no named or dig; scripts/setup cluster installs them")
        self.address = "127.0.0.1"  # BIND listens on addresses of interfaces only
        self.port, = free_ports(self.address, 1)
        self.secret = base64.b64encode(secrets.token_bytes(32)).decode()

    def start(self):
        folder = self._lab.run.file("named")
        os.mkdir(folder)
        with open(os.path.join(folder, "zone"), "w") as file:
            file.write(f"$TTL 60\n@ IN SOA ns.{self.zone}. root.{self.zone}. 1 60 60 3600 1\n@ IN NS ns.{self.zone}.\nns IN A {self.address}\n")
        key = f'key "{self.KEY}"'
        with open(os.path.join(folder, "named.conf"), "w") as file:
            file.write(f"""options {{
  directory "{folder}"; pid-file none; session-keyfile "{folder}/session.key"; managed-keys-directory "{folder}";
  listen-on port {self.port} {{ {self.address}; }}; listen-on-v6 {{ none; }};
  recursion no; dnssec-validation no; notify no;
}};
controls {{ }};
{key} {{ algorithm hmac-sha256; secret "{self.secret}"; }};
zone "{self.zone}" {{ type master; file "zone"; allow-update {{ {key}; }}; allow-transfer {{ {key}; }}; }};
""")
        process = self._lab.run.spawn([self.program, "-g", "-c", os.path.join(folder, "named.conf")], "named.log")
        until("BIND answers", lambda: self._is_ready(process), PATIENCE_S, 0.1)

    def _is_ready(self, process):
        check(process.poll() is None, "named ended; see named.log")
        return self.lookup("ns", "A") == [self.address]

    def lookup(self, name, kind):
        """The records' values, sorted; [] without a record or an answer."""
        asked = subprocess.run(["dig", f"@{self.address}", "-p", str(self.port), "+short", "+time=2", "+tries=1", f"{name}.{self.zone}", kind],
                               capture_output=True, text=True, timeout=30)
        return sorted(line for line in asked.stdout.split("\n") if line and not line.startswith(";")) if asked.returncode == 0 else []

    def until(self, name, **records):
        """Waits until the name has exactly these records: until("web", A=[...], AAAA=[])."""
        found = {}

        def is_so():
            found.update({kind: self.lookup(name, kind) for kind in records})
            return found == {kind: sorted(values) for kind, values in records.items()}
        try:
            return until(f"DNS records of {name}", is_so, 2 * PATIENCE_S, 0.2)
        except AssertionError as late:
            raise AssertionError(f"{late}: expected {records}, got {found}") from late


class ExternalDns:
    def __init__(self, lab, server):
        self._lab, self._server = lab, server
        self._program = _path(EXTERNAL_DNS, "external-dns")
        self.version = EXTERNAL_DNS.version

    def start(self):
        cluster, server = self._lab.cluster, self._server
        metrics, = free_ports(cluster.address, 1)
        self._lab.run.spawn([self._program, "--source=service", "--service-type-filter=LoadBalancer", "--provider=rfc2136", "--policy=sync",
                             "--managed-record-types=A", "--managed-record-types=AAAA", "--txt-owner-id=test", "--txt-prefix=owner-",
                             "--interval=5s", "--events", "--min-event-sync-interval=1s", f"--domain-filter={server.zone}",
                             f"--rfc2136-host={server.address}", f"--rfc2136-port={server.port}", f"--rfc2136-zone={server.zone}",
                             f"--rfc2136-tsig-keyname={server.KEY}", "--rfc2136-tsig-secret-alg=hmac-sha256",
                             f"--rfc2136-tsig-secret={server.secret}", "--rfc2136-tsig-axfr",
                             f"--kubeconfig={cluster.file('admin.kubeconfig')}", f"--metrics-address={cluster.address}:{metrics}"],
                            "external-dns.log")
