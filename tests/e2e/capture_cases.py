# SPDX-License-Identifier: Apache-2.0
"""penstockctl capture: packets of real traffic, read by tshark."""
import collections
import contextlib
import os
import re
import signal
import subprocess
import urllib.request

from fixture import VIP, VIP2, Background, case, check, equal, until
from lab import network as net
from lab.network import inside
from management_cases import Certificates
from manifests import endpoints, service

Packet = collections.namedtuple("Packet", "interface comment source destination source_port destination_port length")
FIELDS = ("frame.interface_name", "frame.comment", "ip.src", "ip.dst", "tcp.srcport", "tcp.dstport", "frame.len")


def read(path):
    """The packets of a file, as tshark decodes them."""
    done = subprocess.run(["tshark", "-n", "-r", path, "-T", "fields", *[word for field in FIELDS for word in ("-e", field)]],
                          capture_output=True, text=True, timeout=60)
    equal(done.returncode, 0, f"exit code of tshark ({done.stderr.strip()})")
    return [Packet(*line.split("\t")) for line in done.stdout.splitlines()]


def value_of(packet, name):
    found = re.search(rf"\b{name}=(\S+)", packet.comment)
    return found.group(1) if found else None


class Capture:
    """penstockctl in the background. The gateway records from the first part of the file on."""

    def __init__(self, lab, *words):
        self.path = lab.run.file("capture.pcapng")
        with contextlib.suppress(FileNotFoundError):
            os.remove(self.path)
        self._process = subprocess.Popen([lab.gateway.program("penstockctl"), "--gateway", lab.gateway.address, "capture", *words,
                                          "-w", self.path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            until("the capture begins", lambda: self._process.poll() is not None or self._has_begun(), patience_s=20)
            check(self._has_begun(), f"no capture: {self._process.returncode}")
        except BaseException:
            self.kill()
            raise

    def _has_begun(self):
        return os.path.exists(self.path) and os.path.getsize(self.path) > 0

    def until(self, what, condition):
        """Waits until condition(packets) is true, and returns the packets."""
        found = []

        def is_true():
            found[:] = read(self.path)
            return condition(found)
        try:
            until(what, is_true, patience_s=20, step_s=0.1)
        except AssertionError as error:
            raise AssertionError(f"{error}; captured: {found}") from None
        return found

    def end(self, with_signal=signal.SIGINT):
        """Returns the packets and the last line. Without a signal it waits for the end of the capture."""
        if with_signal:
            self._process.send_signal(with_signal)
        errors = self._process.communicate(timeout=60)[1].strip()
        equal(self._process.returncode, 0, f"exit code of capture ({errors})")
        return read(self.path), errors

    def kill(self):
        self._process.kill()
        self._process.communicate()


def metric(lab, name):
    with inside(lab.network.namespace("gateway")):
        with urllib.request.urlopen("http://127.0.0.1:9105/metrics", timeout=5) as response:
            return float(re.search(rf"^{name} (\S+)$", response.read().decode(), re.MULTILINE).group(1))


def count(packets, interface):
    return sum(packet.interface == interface and "81" not in (packet.source_port, packet.destination_port) for packet in packets)


def is_balanced(packets):
    """Every packet to the open port has left the gateway."""
    return count(packets, "uplink0:rx") == count(packets, "cluster0:tx") and count(packets, "cluster0:rx") == count(packets, "uplink0:tx")


def web():
    return service("web", external_ips=[VIP]), endpoints("web")


@case(workers=(1, 2))
def packets_are_captured_before_and_after_translation_and_dropped_ones_with_their_reason(lab):
    lab.start(*web())
    lab.get()  # ARP is done
    capture = Capture(lab, f"host {VIP}", "--match", "either")
    backend = lab.get().backend
    equal(lab.connection_outcome(VIP, 81, timeout_s=0.5), "silence", "a port that the Service does not have")
    packets = capture.until("both sides of a connection, and a drop", lambda packets: len(packets) > 12 and is_balanced(packets)
                            and any(packet.interface == "uplink0:drop" for packet in packets))
    check(capture.end()[1].endswith("records, 0 lost: interrupted"), "the last line of an interrupted capture")
    to_gateway = [packet for packet in packets if packet.interface == "uplink0:rx" and packet.destination_port == "80"]
    check(len(to_gateway) >= 3, f"packets of the client: {packets}")
    names = {packet.interface for packet in packets}
    equal(names, {"uplink0:rx", "uplink0:tx", "cluster0:rx", "cluster0:tx", "uplink0:drop"}, "interfaces")
    connections = {value_of(packet, "connection") for packet in packets if packet.source_port != "81" and packet.destination_port != "81"}
    equal(len(connections), 1, f"connections in the comments {connections}")
    places = {value_of(packet, "backend") for packet in packets if packet.interface in ("cluster0:tx", "cluster0:rx")}
    equal(len(places), 1, f"backends in the comments {places}")
    for packet in packets:
        if packet.interface == "cluster0:tx":
            equal((packet.source, f"{packet.destination}:{packet.destination_port}"), (net.CLUSTER, min(places)),
                  f"translated packet to {backend}")
        if packet.interface == "uplink0:tx":
            equal((packet.source, packet.source_port), (VIP, "80"), "translated reply")
        if not packet.interface.endswith(":drop") and packet.destination_port != "81":
            # The first packet to an endpoint waits for its MAC address.
            verdicts = ("transmit", "hold") if packet.interface == "uplink0:rx" else ("transmit",)
            check(value_of(packet, "verdict") in verdicts and "service=default/web" in packet.comment, packet)
    dropped = [packet for packet in packets if packet.interface == "uplink0:drop"]
    check(dropped and all(value_of(packet, "reason") == "vip_port_closed" and packet.destination_port == "81" for packet in dropped),
          f"dropped packets {dropped}")
    until("the capture has ended", lambda: metric(lab, "penstock_capture_running") == 0)
    equal(metric(lab, "penstock_captures_total"), 1.0, "captures begun")
    check(metric(lab, "penstock_capture_records_total") >= len(packets), "the metric of records")
    with open(lab.run.file("penstockd.log")) as log:
        text = log.read()
    check(re.search(r'unix:\S* captures packets: filter "host 80\.11\.12\.10", \d+ instructions, 128 bytes of each packet, for up to 60 s',
                    text), "the log has the capture and its client")
    check(re.search(r"the capture of unix:\S* has ended: the client is gone, \d+ records, 0 lost", text), "the log has its end")


@case()
def a_capture_selects_by_service_client_and_point(lab):
    lab.start(*web(), service("other", external_ips=[VIP2]), endpoints("other"))
    lab.get(), lab.get(VIP2)
    capture = Capture(lab, "--service", "other", "--client", net.CLIENT)
    lab.get(), lab.get(VIP2)
    packets = capture.until("a connection", lambda packets: len(packets) >= 14 and is_balanced(packets))
    capture.end()
    equal({value_of(packet, "service").partition(":")[0] for packet in packets}, {"default/other"}, "Services in the comments")
    capture = Capture(lab, "--service", "web", "--point", "rx", "tcp", "dst", "port", "80")
    lab.get(), lab.get(VIP2)
    packets = capture.until("requests", lambda packets: len(packets) >= 4)
    capture.end()
    equal({(packet.interface, packet.destination) for packet in packets}, {("uplink0:rx", VIP)}, "interfaces and destinations")
    capture = Capture(lab, "--client", "192.0.2.77")
    lab.get()
    packets, last = capture.end(signal.SIGTERM)
    equal((len(packets), last), (0, "0 records, 0 lost: interrupted"), "packets of another client")


@case()
def a_capture_ends_at_its_limits_and_when_its_client_is_gone(lab):
    lab.start(*web())
    with Background(lambda: lab.get().status) as load:
        until("requests are answered", lambda: len(load.results) > 2, patience_s=20)
        packets, last = Capture(lab, "-c", "25").end(with_signal=None)
        equal((len(packets), last), (25, "25 records, 0 lost: the number of records is reached"), "packets with -c 25")
        packets, last = Capture(lab, "tcp", "--seconds", "1", "--snap", "64").end(with_signal=None)
        check(packets and last.endswith("lost: the time limit is reached"), last)
        check(max(int(packet.length) for packet in packets) > 64, "packets longer than the snap length")
        check(os.path.getsize(lab.run.file("capture.pcapng")) < len(packets) * 400, "no more than 64 bytes of each packet")
        # A pipe, as operators use it.
        done = subprocess.run(["bash", "-c", f"set -o pipefail; '{lab.gateway.program('penstockctl')}' --gateway {lab.gateway.address}"
                                             " capture tcp -c 10 | tshark -n -r - | wc -l"], capture_output=True, text=True, timeout=60)
        equal((done.returncode, done.stdout.strip()), (0, "10"), f"packets in a pipe ({done.stderr.strip()})")
        for _ in range(3):
            capture = Capture(lab)
            refused = lab.gateway.ctl("capture", "-w", lab.run.file("second.pcapng"))
            equal((refused.returncode, "another capture is running" in refused.stderr), (1, True), "a second capture at the same time")
            capture.kill()
            until("the capture ends with its client", lambda: metric(lab, "penstock_capture_running") == 0, patience_s=10)
    check(not os.path.exists(lab.run.file("second.pcapng")), "a refused capture has left a file")
    equal(load.errors, [], "requests that failed during captures")
    check(len(load.results) > 10, f"{len(load.results)} requests were answered")


@case()
def a_capture_is_for_administrators_and_errors_name_their_place(lab):
    certificates = Certificates(lab.run.file("tls"))
    lab.gateway.more_options = ["--listen", "127.0.0.1:9106", "--tls-cert", certificates.file("gateway.pem"), "--tls-key",
                                certificates.file("gateway.key"), "--tls-client-ca", certificates.file("ca.pem"), "--tls-admin-names",
                                "admin"]
    lab.start(*web())
    path = lab.run.file("capture.pcapng")

    def ctl(name, *words):
        return lab.network.run("gateway", lab.gateway.program("penstockctl"), "--gateway", "127.0.0.1:9106",
                               *certificates.of_client(name), "capture", "--seconds", "1", "-w", path, *words)
    refused = ctl("reader")
    equal((refused.returncode, "permission denied" in refused.stderr, os.path.exists(path)), (1, True, False),
          f"a capture by a reader ({refused.stderr.strip()})")
    done = ctl("admin")
    equal(done.returncode, 0, f"a capture by an administrator ({done.stderr.strip()})")
    with open(lab.run.file("penstockd.log")) as log:
        text = log.read()
    check(re.search(r"reader, .* requested a capture: permission denied", text), "the log has the refused client")
    check(re.search(r"admin, .* captures packets: filter ", text), "the log has the administrator")
    with open(path, "w") as file:
        file.write("former")
    failed = lab.gateway.ctl("capture", "tcp and (port 80 or )", "-w", path)
    equal(failed.returncode, 2, "exit code of a wrong filter")
    check("filter, column 21: " in failed.stderr and failed.stderr.endswith(f"\n  {' ' * 20}^\n"), failed.stderr)
    failed = lab.gateway.ctl("capture", "--service", "shop/absent", "-w", path)
    equal((failed.returncode, "there is no service shop/absent" in failed.stderr), (1, True), "a Service that does not exist")
    with open(path) as file:
        equal(file.read(), "former", "the file after captures that did not begin")
    equal(metric(lab, "penstock_captures_total"), 1.0, "captures begun")
