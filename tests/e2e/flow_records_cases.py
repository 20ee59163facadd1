# SPDX-License-Identifier: Apache-2.0
"""Flow records of real connections, as lines of JSON."""
import datetime
import json
import os
import signal
import socket

from fixture import VIP, VIP2, case, check, equal, until
from lab import network as net
from lab.network import BACKENDS, inside
from manifests import endpoints, service

ON = {"penstock.io/access-log": "true"}


def web(name="web", vip=VIP, **annotations):
    return [service(name, external_ips=[vip], annotations={f"penstock.io/{key}": value for key, value in annotations.items()}), endpoints(name)]


def echo(backends=tuple(BACKENDS), **annotations):
    return [service("echo", 5353, protocol="UDP", target_port=5353, external_ips=[VIP], annotations=annotations),
            endpoints("echo", backends, port=5353, protocol="UDP")]


def records(lab, path="default/flows.jsonl"):
    """The lines of a file; an incomplete one is an error of the gateway."""
    try:
        with open(lab.run.file("flows", path)) as file:
            text = file.read()
    except FileNotFoundError:
        return []
    check(text.endswith("\n") or not text, f"{path} ends within a line")
    return [json.loads(line) for line in text.splitlines()]


def start(lab, *objects, options=()):
    lab.gateway.more_options = ["--flow-log", lab.run.file("flows"), *options]
    lab.start(*objects)


def tcp_request(lab, port, address=VIP):
    """One HTTP request from this port of the client."""
    with inside(lab.network.namespace("client")):
        client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    client.settimeout(20)
    client.bind((net.CLIENT, port))
    client.connect((address, 80))
    with client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: web\r\nConnection: close\r\n\r\n")
        answer = b""
        while part := client.recv(65536):
            answer += part
    check(answer.startswith(b"HTTP/1.1 200"), f"the answer: {answer[:80]}")
    return answer


@case(workers=(1, 2))
def a_connection_has_a_begin_and_an_end_with_its_numbers_ANN11(lab):
    start(lab, *web(**{"access-log": "true"}), *web("plain", VIP2))
    answer = tcp_request(lab, 40001)
    lab.get(VIP2)  # has no records
    until("the begin is written", lambda: len(records(lab)) == 1)
    begin = records(lab)[0]
    equal({name: begin[name] for name in ("event", "namespace", "service", "protocol", "client_address", "client_port", "frontend_address",
                                          "frontend_port", "source_address", "backend_port", "gateway")},
          {"event": "begin", "namespace": "default", "service": "web", "protocol": "tcp", "client_address": net.CLIENT, "client_port": 40001,
           "frontend_address": VIP, "frontend_port": 80, "source_address": net.CLUSTER, "backend_port": 9376, "gateway": "edge-1"}, "the begin")
    check(begin["backend_address"] in BACKENDS.values(), f"no endpoint: {begin['backend_address']}")
    # The tuple is in TIME-WAIT. Its next SYN ends the connection.
    tcp_request(lab, 40001)
    until("the end and the next begin are written", lambda: len(records(lab)) == 3)
    end, second = records(lab)[1:]
    equal((end["event"], second["event"]), ("end", "begin"), "events")
    equal((end["flow"], end["reason"]), (begin["flow"], "closed"), "flow and reason of the end")
    check(second["flow"] != begin["flow"], "two connections with one id")
    for name in ("backend_address", "source_port"):
        equal(end[name], begin[name], f"{name} of the end")
    # Each batch of records is converted by a new reading of the wall clock.
    apart = abs(datetime.datetime.fromisoformat(end["start"].rstrip("Z")) - datetime.datetime.fromisoformat(begin["start"].rstrip("Z")))
    check(apart < datetime.timedelta(seconds=0.5), f"the starts of begin and end are {apart} apart")
    check(4 <= end["forward_packets"] <= 12 and 3 <= end["reverse_packets"] <= 12, f"packets: {end}")
    headers = 40 * end["reverse_packets"]
    check(len(answer) + headers <= end["reverse_bytes"] <= len(answer) + headers + 40 * end["reverse_packets"], f"bytes of {len(answer)}: {end}")
    check(0 <= end["duration_ms"] < 20_000, f"duration: {end}")


@case()
def udp_ends_idle_and_with_its_endpoint_ANN11_ANN12_ANN21(lab):
    names = {"penstock.io/access-log-sink": "audit", "penstock.io/access-log-prefix": "team/dns", "penstock.io/tags": "team=dns,garbage,stage=prod"}
    start(lab, *echo(**ON, **names, **{"penstock.io/idle-timeout": "1"}))
    lab.echo(VIP, 5353, b"x" * 100)
    at = "audit/team/dns/flows.jsonl"
    until("the connection is idle", lambda: len(records(lab, at)) == 2, patience_s=30)
    end = records(lab, at)[1]
    equal([end[name] for name in ("event", "reason", "protocol", "forward_packets", "forward_bytes", "reverse_packets")],
          ["end", "idle", "udp", 1, 128, 1], "the end")
    equal({json.dumps(one["tags"]) for one in records(lab, at)}, {'{"stage": "prod", "team": "dns"}'}, "tags of the Service")
    described = lab.gateway.ctl("describe", "service", "echo").stdout
    check("  Tags:            stage=prod,team=dns\n" in described and '"garbage" is not valid' in described, f"describe service:\n{described}")
    lab.apply(*echo(**ON, **names))  # the ordinary idle timeout
    lab.gateway.until_served({"default/echo/udp"}, backends=False)
    lab.echo(VIP, 5353)
    until("the next begin", lambda: len(records(lab, at)) == 3)
    lab.apply(*echo(backends=(), **ON, **names))
    until("the end of the endpoint", lambda: len(records(lab, at)) == 4, patience_s=15)
    equal(records(lab, at)[3]["reason"], "ended", "reason")


@case()
def the_next_process_writes_the_ends_of_adopted_connections_ANN11(lab):
    start(lab, *echo(**ON), options=("--flow-services", "all"))
    client = lab.udp_socket(VIP, 5353)
    with client:
        client.send(b"one")
        client.recv(100)
        until("the begin is written", lambda: len(records(lab)) == 1)
        lab.gateway.daemon.kill()
        lab.gateway.daemon.wait()
        lab.gateway.start_daemon()
        lab.gateway.until_served({"default/echo/udp"}, backends=False)
        client.send(b"two")
        client.recv(100)
    lab.apply(*echo(backends=(), **ON))
    until("the end is written", lambda: len(records(lab)) == 2, patience_s=15)
    begin, end = records(lab)
    equal((end["event"], end["reason"], end.get("adopted")), ("end", "ended", True), "the end")
    equal((end["client_port"], end["backend_address"]), (begin["client_port"], begin["backend_address"]), "the tuple")
    equal((end["forward_packets"], end["reverse_packets"]), (1, 1), "packets since the adoption")


@case()
def sighup_opens_the_files_again_and_status_counts(lab):
    start(lab, *echo(), options=("--flow-services", "all"))
    lab.echo(VIP, 5353)
    until("a begin is written", lambda: len(records(lab)) == 1)
    file = lab.run.file("flows", "default/flows.jsonl")
    os.rename(file, file + ".moved")
    os.kill(lab.gateway.daemon.pid, signal.SIGHUP)
    lab.echo(VIP, 5353)
    until("the next begin is in a new file", lambda: len(records(lab)) == 1)
    equal(len(records(lab, "default/flows.jsonl.moved")), 1, "records in the renamed file")
    status = lab.gateway.json("status")
    equal(status["flow_records"]["logged"], 2, "records in the status")
    check("Flow records:   2 records; 2 written to files" in lab.gateway.ctl("status").stdout, "the line of status")


@case()
def a_gateway_without_files_and_collector_says_so_ANN11_ANNG4(lab):
    lab.start(*echo(**ON))
    lab.echo(VIP, 5353)
    until("the notice is shown", lambda: "UnsupportedAnnotation" in lab.gateway.ctl("describe", "service", "default/echo").stdout, patience_s=15)
    check("flow_records" not in lab.gateway.json("status"), "status of flow records that are off")


@case()
def one_in_two_is_about_half_and_begins_have_ends(lab):
    start(lab, *echo(**{"penstock.io/idle-timeout": "1"}), options=("--flow-services", "all", "--flow-sample", "2"))
    for _ in range(100):
        lab.echo(VIP, 5353)

    def ended():
        written = records(lab)
        return 2 * sum(one["event"] == "end" for one in written) == len(written) > 0

    until("all have ended", ended, patience_s=30)
    written = records(lab)
    begins = [one["flow"] for one in written if one["event"] == "begin"]
    check(25 <= len(begins) <= 75, f"{len(begins)} of 100 connections have records")
    equal(sorted(begins), sorted(one["flow"] for one in written if one["event"] == "end"), "ends")
    check(all(one["sampled_one_in"] == 2 for one in written), "sampling rate in the records")
