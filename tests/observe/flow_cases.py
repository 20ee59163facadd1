# SPDX-License-Identifier: Apache-2.0
"""IPFIX messages of flow records, decoded by collectors of other projects."""
import glob
import json
import os
import shutil
import subprocess
import time

from fixture import VIP, VIP_6, Skip, case, check, equal, until
from lab import network as net
from lab.network import BACKENDS
from manifests import endpoints, service
from testbed.api_servers import NotToBeHad
from testbed.go_programs import GOFLOW2

COLLECTOR_PORT = 4739
BUILD_S = 60  # of goflow2, if it is not in the cache


def start(lab):
    lab.gateway.more_options = ["--flow-collector", f"127.0.0.1:{COLLECTOR_PORT}", "--flow-services", "all", "--flow-domain", "77"]
    lab.start(service("echo", 5353, protocol="UDP", target_port=5353, external_ips=[VIP, VIP_6], families=("IPv4", "IPv6"),
                      annotations={"penstock.io/idle-timeout": "1"}),
              endpoints("echo", port=5353, protocol="UDP"), endpoints("echo", port=5353, protocol="UDP", family="IPv6"),
              wait_for={"default/echo/udp"})


def send(lab, connections):
    """Opens connections, half of them IPv6, and waits until the gateway has sent their ends."""
    ports = set()
    for n in range(connections):
        with lab.udp_socket(VIP if n % 2 == 0 else VIP_6, 5353) as client:
            client.send(b"x" * 100)
            client.recv(1000)
            ports.add(client.getsockname()[1])
    until("the gateway has sent all records", lambda: int(lab.gateway.json("status")["flow_records"].get("sent", 0)) >= 2 * connections,
          patience_s=30)
    status = lab.gateway.json("status")["flow_records"]
    equal(status.get("lost", []), [], "lost records")
    return ports


@case()
def nfcapd_reads_begins_and_ends(lab):
    if not shutil.which("nfcapd"):
        raise Skip("nfcapd is missing: scripts/setup observe")
    folder = lab.run.file("nfdump")
    os.mkdir(folder)
    lab.build_network()
    collector = lab.network.start("gateway", ["nfcapd", "-b", "127.0.0.1", "-p", str(COLLECTOR_PORT), "-w", folder, "-t", "3600"], "nfcapd.log")
    until("nfcapd listens", lambda: glob.glob(f"{folder}/nfcapd.current*"), patience_s=15)
    lab.build_network = lambda: None
    start(lab)
    connections = 40
    ports = send(lab, connections)
    collector.terminate()
    equal(collector.wait(timeout=20), 0, "exit code of nfcapd")
    with open(lab.run.file("nfcapd.log")) as log:
        text = log.read()
    check("Sequence Errors: 0, Bad Packets: 0" in text, f"nfcapd complains:\n{text}")
    files = [name for name in glob.glob(f"{folder}/nfcapd.2*")]
    equal(len(files), 1, "files of nfcapd")
    done = subprocess.run(["nfdump", "-r", files[0], "-q", "-N", "-o", "json"], capture_output=True, text=True, timeout=60)
    equal(done.returncode, 0, f"exit code of nfdump: {done.stderr}")
    records = json.loads("[" + done.stdout.strip().strip("[],") + "]")
    equal(len(records), 2 * connections, "records")
    lab.remarks.append(f"{len(records)} records, members {sorted(set().union(*records))}")
    v4 = [one for one in records if "src4_addr" in one]
    equal(len(v4), connections, "records of IPv4 connections")
    for one in records:
        check(one["src_port"] in ports and one["dst_port"] == 5353, f"ports of {one}")
    for one in v4:
        equal((one["src4_addr"], one["dst4_addr"], one["proto"]), (net.CLIENT, VIP, 17), "addresses and protocol")
        equal(one["src4_xlt_ip"], net.CLUSTER, "translated source")
        check(one["dst4_xlt_ip"] in BACKENDS.values(), f"translated destination of {one}")
    ends = [one for one in v4 if one.get("in_packets", 0) > 0]
    equal(len(ends), connections // 2, "records with packets")
    for one in ends:
        equal((one["in_packets"], one["in_bytes"]), (1, 128), "packets and bytes of the client")
        equal(one["out_packets"], 1, "packets of the endpoint")


@case()
def goflow2_reads_begins_and_ends(lab):
    try:
        programs = GOFLOW2.obtain(time.monotonic() + BUILD_S)
    except NotToBeHad as why:
        raise Skip(f"goflow2 {GOFLOW2.version}: {why}") from None
    lab.build_network()
    out = lab.run.file("goflow2.json")
    # With two workers, the records of a datagram may be decoded before the template of the former one is known.
    listen = f"netflow://127.0.0.1:{COLLECTOR_PORT}?count=1&workers=1"
    collector = lab.network.start("gateway", [os.path.join(programs, "goflow2"), "-listen", listen, "-transport", "file",
                                              "-transport.file", out, "-format", "json", "-addr", "127.0.0.1:8080"], "goflow2.log")
    until("goflow2 listens", lambda: f":{COLLECTOR_PORT}" in lab.network.run("gateway", "ss", "-uln").stdout, patience_s=15)
    lab.build_network = lambda: None
    start(lab)
    connections = 20
    ports = send(lab, connections)

    def lines():
        try:
            with open(out) as file:
                return [json.loads(line) for line in file.read().splitlines()]
        except (FileNotFoundError, json.JSONDecodeError):
            return []

    until("goflow2 has written all records", lambda: len(lines()) == 2 * connections, patience_s=15)
    collector.terminate()
    records = lines()
    lab.remarks.append(f"{len(records)} records, members {sorted(records[0])}")
    for one in records:
        equal((one["type"], one["observation_domain_id"], one["proto"], one["dst_port"]), ("IPFIX", 77, "UDP", 5353), f"of {one}")
        check(one["src_port"] in ports, f"source port of {one}")
    equal(sum(one["src_addr"] == net.CLIENT and one["dst_addr"] == VIP for one in records), connections, "records of IPv4 connections")
    equal(sorted({one["packets"] for one in records}), [0, 1], "packets of begins and ends")
    equal(sum(one["bytes"] for one in records), connections * 128 + connections // 2 * 20, "bytes")
