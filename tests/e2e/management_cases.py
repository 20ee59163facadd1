# SPDX-License-Identifier: Apache-2.0
"""Management interfaces: API sockets, certificates, metrics, options from a file."""
import contextlib
import json
import os
import re
import socket
import stat
import time
import urllib.request

from fixture import VIP, case, check, equal, until
from lab import gateway as gw
from lab import network as net
from lab import traffic
from lab.network import command, inside
from manifests import endpoints, service


def web():
    return service("web", external_ips=[VIP]), endpoints("web")


class Certificates:
    """A CA, the gateway's certificate, and one for each client name."""

    def __init__(self, directory, names=("admin", "reader")):
        self.directory = directory
        os.mkdir(directory)
        self._openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "1", "-subj", "/CN=ca",
                      "-keyout", self.file("ca.key"), "-out", self.file("ca.pem"))
        for name in ("gateway", *names):
            self._openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={name}",
                          "-keyout", self.file(f"{name}.key"), "-out", self.file(f"{name}.csr"))
            with open(self.file("extensions"), "w") as extensions:
                extensions.write(f"subjectAltName=DNS:{name},IP:127.0.0.1,IP:{net.CLUSTER}\n")
            self._openssl("x509", "-req", "-days", "1", "-in", self.file(f"{name}.csr"), "-CA", self.file("ca.pem"), "-CAkey",
                          self.file("ca.key"), "-CAcreateserial", "-extfile", self.file("extensions"), "-out", self.file(f"{name}.pem"))

    def file(self, name):
        return os.path.join(self.directory, name)

    def of_client(self, name):
        return ["--tls-ca", self.file("ca.pem"), "--tls-cert", self.file(f"{name}.pem"), "--tls-key", self.file(f"{name}.key")]

    @staticmethod
    def _openssl(*words):
        command("openssl", *words)


@case()
def a_tcp_address_needs_mutual_tls_and_names_decide_who_may_what(lab):
    certificates = Certificates(lab.run.file("tls"))
    strangers = Certificates(lab.run.file("strangers"))
    lab.gateway.more_options = ["--listen", "127.0.0.1:9106", "--tls-cert", certificates.file("gateway.pem"), "--tls-key",
                                certificates.file("gateway.key"), "--tls-client-ca", certificates.file("ca.pem"), "--tls-admin-names",
                                "admin"]
    lab.start(*web())

    def ctl(*words):
        return lab.network.run("gateway", lab.gateway.program("penstockctl"), "--gateway", "127.0.0.1:9106", *words)
    explain = ("explain", "--proto", "tcp", "--src", "10.80.1.2:40000", "--dst", f"{VIP}:80")
    equal(ctl(*certificates.of_client("reader"), "get", "services").returncode, 0, "exit code of a reader that reads")
    equal(ctl(*certificates.of_client("admin"), *explain).returncode, 0, "exit code of an admin that debugs")
    refused = ctl(*certificates.of_client("reader"), *explain)
    equal(refused.returncode, 1, f"exit code of a reader that debugs ({refused.stderr.strip()})")
    check(ctl(*strangers.of_client("admin"), "get", "services").returncode != 0, "a certificate of another CA is accepted")
    check(ctl("get", "services").returncode != 0, "no certificate is accepted")
    status = ctl(*certificates.of_client("reader"), "status").stdout
    check(re.search(r"^Certificate:    CN=gateway expires \d{4}-\d\d-\d\d \d\d:\d\d UTC, in \d", status, re.MULTILINE), f"status:\n{status}")


@case()
def idle_connections_of_one_source_are_capped_and_administrators_are_served(lab):
    certificates = Certificates(lab.run.file("tls"))
    lab.gateway.more_options = ["--listen", "0.0.0.0:9106", "--tls-cert", certificates.file("gateway.pem"), "--tls-key",
                                certificates.file("gateway.key"), "--tls-client-ca", certificates.file("ca.pem"), "--tls-admin-names",
                                "admin"]
    lab.start(*web())
    idle = []
    with inside(lab.network.namespace("client")):
        for _ in range(300):
            with contextlib.suppress(ConnectionResetError):  # refused as soon as the server is up
                idle.append(socket.create_connection((net.UPLINK, 9106), timeout=5))
    try:
        def metric(name):
            with inside(lab.network.namespace("gateway")):
                with urllib.request.urlopen("http://127.0.0.1:9105/metrics", timeout=5) as response:
                    return float(re.search(rf"^penstock_rpc_connections{re.escape(name)} (\S+)$", response.read().decode(),
                                           re.MULTILINE).group(1))
        until("the others are refused", lambda: metric('_refused_total{rule="source"}') == 300 - 32, patience_s=5)
        equal(metric(""), 32.0, "open connections")
        for place, address in (("gateway", "127.0.0.1:9106"), ("backend-1", f"{net.CLUSTER}:9106")):
            done = lab.network.run(place, lab.gateway.program("penstockctl"), "--gateway", address, *certificates.of_client("admin"),
                                   "get", "services")
            equal(done.returncode, 0, f"exit code of penstockctl in {place} at {address} ({done.stderr.strip()})")
        equal(lab.gateway.ctl("get", "services").returncode, 0, "exit code of penstockctl at the Unix socket")
    finally:
        for each in idle:
            each.close()
    until("their places are free", lambda: metric("") == 0, patience_s=10)
    with open(lab.run.file("penstockd.log")) as log:
        check("refused: the limit of 32 from one source is reached" in log.read(), "no line about refused connections")


@case()
def renewed_certificates_are_used_without_a_restart_and_refusals_are_told(lab):
    certificates = Certificates(lab.run.file("tls"), ("admin", "gateway-2"))
    strangers = Certificates(lab.run.file("strangers"))
    lab.gateway.more_options = ["--listen", "127.0.0.1:9106", "--log-format", "json", "--tls-cert", certificates.file("gateway.pem"),
                                "--tls-key", certificates.file("gateway.key"), "--tls-client-ca", certificates.file("ca.pem"),
                                "--tls-admin-names", "admin"]
    sync_words = lab.gateway.sync_words
    lab.gateway.sync_words = lambda manifests: [
        *["127.0.0.1:9106" if word == lab.gateway.address else word for word in sync_words(manifests)], *certificates.of_client("admin"),
        "--log-format", "json"]
    lab.start(*web())

    def ctl(*words):
        return lab.network.run("gateway", lab.gateway.program("penstockctl"), "--gateway", "127.0.0.1:9106", *words)

    def served():
        return lab.network.run("gateway", "bash", "-c", "openssl s_client -connect 127.0.0.1:9106 -alpn h2 </dev/null 2>/dev/null"
                               " | openssl x509 -noout -subject").stdout
    check("CN = gateway\n" in served(), f"the certificate at the start: {served()}")
    for kind in ("pem", "key"):
        os.rename(certificates.file(f"gateway-2.{kind}"), certificates.file(f"gateway.{kind}"))
    until("the new certificate is served", lambda: "CN = gateway-2" in served(), patience_s=20, step_s=0.3)
    lab.apply(service("web", 8000, external_ips=[VIP]), endpoints("web"))
    until("the stream of before the renewal carries changes", lambda: lab.connection_outcome(VIP, 8000, timeout_s=0.3) == "open")
    equal(lab.gateway.sync_status()["gateways"][0]["full_states"], 1, "streams that penstock-sync has opened")
    refused = ctl("--tls-ca", certificates.file("ca.pem"), *strangers.of_client("admin")[2:], "get", "services")
    check(refused.returncode == 1 and "certificate refused by the gateway: ours is CN=admin" in refused.stderr, refused.stderr)
    refused = ctl(*certificates.of_client("admin")[2:], "--tls-ca", strangers.file("ca.pem"), "get", "services")
    check(refused.returncode == 1 and "certificate refused: the gateway's certificate" in refused.stderr, refused.stderr)
    for log in ("penstockd.log", "penstock-sync.log"):
        with open(lab.run.file(log)) as lines:
            records = [json.loads(line) for line in lines]  # each line is one record
        if log == "penstockd.log":
            check(any("client certificate refused: CN=admin (issuer CN=ca)" in record["message"] for record in records),
                  "the log of penstockd names the client that it refuses")
    with inside(lab.network.namespace("gateway")):
        with urllib.request.urlopen("http://127.0.0.1:9105/metrics", timeout=5) as response:
            found = re.search(r"^penstock_tls_certificate_expiry_timestamp_seconds (\S+)$", response.read().decode(), re.MULTILINE)
    check(found and 0 < float(found.group(1)) - time.time() < 2 * 86400, "the metric has the date on which the certificate expires")


@case()
def commands_of_the_certificates_page_make_an_administrator_and_a_reader(lab):
    with open(os.path.join(os.path.dirname(__file__), "../../docs/certificates.md")) as page:
        section = page.read().split("## With openssl\n")[1].split("\n## ")[0]
    blocks = re.findall(r"^```\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    check(len(blocks) >= 4 and "192.0.2.1" in blocks[0], f"{len(blocks)} blocks of commands")

    def run(*commands):
        script = "\n".join(commands).replace("192.0.2.1", "127.0.0.1")
        return command("bash", "-euo", "pipefail", "-c", f"cd {lab.run.path}\n{script}")
    verified = run(*blocks)
    for name in ("gateway", "edge-sync", "monitoring"):
        check(f"{name}.pem: OK" in verified, f"openssl verify: {verified}")

    def file(name):
        return os.path.join(lab.run.path, "certificates", name)
    for name in ("ca.key", "gateway.key", "edge-sync.key", "monitoring.key"):
        equal(oct(stat.S_IMODE(os.stat(file(name)).st_mode)), "0o600", f"mode of {name}")
    lab.gateway.more_options = ["--listen", "127.0.0.1:9106", "--tls-cert", file("gateway.pem"), "--tls-key", file("gateway.key"),
                                "--tls-client-ca", file("ca.pem"), "--tls-admin-names", "edge-sync"]
    lab.start(*web())

    def ctl(name, *words):
        return lab.network.run("gateway", lab.gateway.program("penstockctl"), "--gateway", "127.0.0.1:9106", "--tls-ca", file("ca.pem"),
                               "--tls-cert", file(f"{name}.pem"), "--tls-key", file(f"{name}.key"), *words)
    explain = ("explain", "--proto", "tcp", "--src", "10.80.1.2:40000", "--dst", f"{VIP}:80")
    for name, words, code in (("edge-sync", explain, 0), ("monitoring", ("status",), 0), ("monitoring", explain, 1),
                              ("gateway", ("status",), 1)):
        done = ctl(name, *words)
        check(done.returncode == code if code == 0 else done.returncode != 0, f"{name} {words[0]}: {done.returncode} {done.stderr}")
    # The renewal: the last block alone, in the folder of the certificates.
    serial = command("openssl", "x509", "-noout", "-serial", "-in", file("gateway.pem"))
    run("cd certificates", "address=127.0.0.1", blocks[-1])
    renewed = command("openssl", "x509", "-noout", "-serial", "-in", file("gateway.pem"))
    check(serial != renewed, "the renewal leaves the former certificate")
    served = "openssl s_client -connect 127.0.0.1:9106 -alpn h2 </dev/null 2>/dev/null | openssl x509 -noout -serial"
    until("the renewed certificate is served", lambda: lab.network.run("gateway", "bash", "-c", served).stdout == renewed,
          patience_s=20, step_s=0.3)
    equal(ctl("monitoring", "status").returncode, 0, "exit code after the renewal")


@case()
def a_tcp_address_without_tls_is_refused_by_name(lab):
    lab.build_network()
    words = lab.gateway.daemon_words()
    words[words.index("--listen") + 1] = "127.0.0.1:9106"
    done = lab.network.run("gateway", *words)
    check(done.returncode != 0 and "tls" in done.stderr, f"{done.returncode}: {done.stderr}")


@case()
def the_socket_is_for_its_owner_and_group(lab):
    lab.start(*web())
    mode = os.stat(lab.gateway.socket)
    check(stat.S_ISSOCK(mode.st_mode), "no socket")
    equal(oct(stat.S_IMODE(mode.st_mode)), "0o660", "mode of the socket")


@case()
def metrics_agree_with_the_client(lab):
    lab.start(*web())
    frontend = traffic.Frontend("ExternalIP", "default/web/tcp", "tcp", VIP, 80)
    at_client = traffic.ClientCounters(lab.network, [frontend])
    lab.answered_by(12)
    until("the last packet is counted",
          lambda: at_client.read()[frontend][0] == gw.traffic_of(lab.gateway.services()[frontend.service])["forward_packets"])
    sent, received = at_client.read()[frontend]
    with inside(lab.network.namespace("gateway")):
        with urllib.request.urlopen("http://127.0.0.1:9105/metrics", timeout=5) as response:
            text = response.read().decode()
    for metric, expected in (("new_flows_total", 12), ("forward_packets_total", sent), ("reverse_packets_total", received)):
        values = [float(line.rsplit(" ", 1)[1]) for line in text.splitlines()
                  if line.startswith(f"penstock_service_{metric}{{") and 'service="web"' in line]
        equal(values, [float(expected)], f"penstock_service_{metric}")
    at_endpoints = {"in_use": 0, "in_use_busiest_endpoint": 0}
    for name in at_endpoints:
        at_endpoints[name] = sum(float(line.rsplit(" ", 1)[1]) for line in text.splitlines()
                                 if line.startswith(f"penstock_snat_ports_{name}{{") and 'protocol="TCP"' in line)
    equal(at_endpoints["in_use"], 12, "SNAT ports in use")
    check(1 <= at_endpoints["in_use_busiest_endpoint"] <= 12, f"SNAT ports of the busiest endpoint: {at_endpoints}")
    total = re.search(r'^penstock_packet_buffers\{pool="penstock_mbufs_\d+"\} (\S+)$', text, re.MULTILINE)
    in_use = re.search(r'^penstock_packet_buffers_in_use\{pool="penstock_mbufs_\d+"\} (\S+)$', text, re.MULTILINE)
    check(total and in_use and 0 <= float(in_use.group(1)) < float(total.group(1)), "packet buffers in use and in all")
    check('penstock_build_info{version="' in text, "no build info")
    for reason in ("no_route", "vip_port_closed"):
        check(re.search(rf'^penstock_drops_total\{{[^}}]*reason="{reason}"', text, re.MULTILINE), f"no metric for drops by {reason}")


@case()
def options_come_from_a_file_too(lab):
    words = lab.gateway.daemon_words()[1:]
    ini = lab.run.file("penstockd.ini")
    with open(ini, "w") as file:
        for name, value in zip(words[::2], words[1::2]):
            file.write(f"{name.removeprefix('--')} = {value}\n")
    lab.gateway.daemon_words = lambda: [lab.gateway.program("penstockd"), "--config", ini]
    lab.start(*web())
    equal(lab.get().status, 200, "status")


@case()
def without_hugepages_it_works_and_says_so(lab):
    lab.gateway.more_options = ["--no-huge"]
    lab.start(*web())
    equal(lab.get().status, 200, "status")
    check("no hugepages" in lab.gateway.ctl("status").stdout, "status does not say that there are no hugepages")


@case()
def node_ports_follow_the_addresses_of_the_twin_NODEPORT002(lab):
    lab.start(service("web", node_port=30080), endpoints("web"))
    lab.network.ip("gateway", "address add 10.80.1.9/24 dev uplink0")
    until("the NodePort is served on the new address", lambda: lab.connection_outcome("10.80.1.9", 30080, timeout_s=0.2) == "open")
    equal(lab.get("10.80.1.9", 30080).status, 200, "status")


@case()
def every_table_is_also_json_and_yaml(lab):
    lab.start(*web())
    lab.answered_by(3)
    for what in ("services", "backends", "connections", "flows", "ports", "workers", "routes", "neighbours"):
        rows = lab.gateway.json("get", what)
        check(isinstance(rows, list) and rows, f"get {what}: {rows}")
        for form in ("table", "wide", "yaml"):
            asked = lab.gateway.ctl("-o", form, "get", what)
            check(asked.returncode == 0 and asked.stdout.strip(), f"-o {form} get {what}: {asked.stderr}")
    json.loads(lab.gateway.ctl("-o", "json", "describe", "service", "default/web").stdout)
    equal(lab.gateway.ctl("describe", "service", "default/nobody").returncode, 1, "exit code for a Service that does not exist")
    equal(lab.gateway.ctl("no-such-command").returncode, 2, "exit code for a wrong command line")


@case()
def connections_are_filtered(lab):
    lab.start(*web(), service("other", 81, external_ips=[VIP]), endpoints("other"))
    # Each rotation begins at a random backend (SCHED-002), so the backend's share is derived from its own
    # answers.
    answers = lab.answered_by(3) + lab.answered_by(2, VIP, 81)
    equal(len(lab.gateway.json("get", "connections", "--frontend", f"{VIP}:81")), 2, "by frontend")
    for backend, address in net.BACKENDS.items():
        equal(len(lab.gateway.json("get", "connections", "--backend", address)), answers[backend], f"by backend {backend}")
    equal(len(lab.gateway.json("get", "connections", "--client", net.CLIENT, "--proto", "udp")), 0, "by protocol")
    equal(gw.traffic_of(lab.gateway.services()["default/other/tcp"])["new_flows"], 2, "new flows")
