# SPDX-License-Identifier: Apache-2.0
"""The body of scripts/quickstart, which has already installed and built the dependencies."""
import argparse
import os
import shutil
import sys

from . import accounting, lifetime, servers, state, traffic
from . import gateway as gw
from . import network as net

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
# Per frontend. The client counts packets, and penstockd's counters must match exactly.
REQUESTS = 150
# The requests and datagrams for each frontend of docs/examples.
FRONTENDS = (
    traffic.Frontend("ExternalIP", "default/my-service:http/tcp", "tcp", "80.11.12.10", 80),
    traffic.Frontend("LoadBalancer", "default/web:http/tcp", "tcp", "203.0.113.20", 80),
    traffic.Frontend("NodePort", "default/web-node:http/tcp", "tcp", net.UPLINK, 30080),
    # Policy Local: of the three endpoints only the one on this node, edge-1, is eligible.
    traffic.Frontend("ExternalIP, Local", "default/web-local:http/tcp", "tcp", "80.11.12.10", 8080, reaches=("backend-1",)),
    traffic.Frontend("ExternalIP, IPv6", "default/web-dual:http/tcp", "tcp", "2001:db8:80::20", 80),
    traffic.Frontend("ExternalIP", "default/echo:echo/udp", "udp", "80.11.12.10", 5353),
    traffic.Frontend("LoadBalancer", "default/echo:echo/udp", "udp", "203.0.113.20", 5353),
    traffic.Frontend("NodePort", "default/echo:echo/udp", "udp", net.UPLINK, 30053),
)


class CheckFailed(Exception):
    pass


def main():
    parser = argparse.ArgumentParser(description="scripts/quickstart is what people call")
    parser.add_argument("action", choices=("check", "keep", "stop"))
    parser.add_argument("--driver", default="af_packet")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    options = parser.parse_args()
    keep = options.action == "keep"

    swept = state.sweep()
    if swept:
        print(f"cleaned up after {', '.join(swept)}, which did not end by itself")
    if options.action == "stop":
        return stop()
    kept = kept_runs()
    if keep and kept:
        print("quickstart: a network is already running; scripts/quickstart --stop ends it", file=sys.stderr)
        return 1
    return lifetime.carry_out("quickstart", lambda run: check(run, options, keep), (CheckFailed, RuntimeError, net.CommandFailed))


def kept_runs():
    return [run for run in state.runs() if run.kept and run.name.startswith("quickstart-")]


def stop():
    kept = kept_runs()
    for run in kept:
        run.undo()
    print("quickstart: stopped" if kept else "quickstart: nothing is running")
    return 0


def check(run, options, keep):
    network = net.Network(run)
    network.build()
    servers.start(network, run)
    manifests = run.file("manifests")
    shutil.copytree(os.path.join(ROOT, "docs/examples"), manifests)
    gateway = gw.Gateway(network, run, options.build, options.driver, options.workers)
    # on failure penstockd logs it and uses the memory that is available
    run.reserve_hugepages(gateway.memory_mb)
    gateway.start_daemon()
    gateway.start_sync(manifests)
    gateway.until_served({frontend.service for frontend in FRONTENDS})
    send_and_account(network, gateway)
    if keep:
        run.keep()
        tell_what_to_try(network, gateway, manifests)
    print("quickstart: ok")


def send_and_account(network, gateway):
    report = accounting.send_and_settle(network, gateway, FRONTENDS, REQUESTS)
    print_table(("frontend", "requests", "failures", *net.BACKENDS),
                [(frontend, outcome.requests, outcome.failures.total(),
                  *(share(outcome.answered_by[name], outcome.requests) for name in net.BACKENDS))
                 for frontend, outcome in report.outcomes.items()])
    print_table(("service (client : penstockd)", "flows", "packets sent", "packets received"),
                [(service, *(f"{at_client} : {counted}" for at_client, counted in account.pairs().values()))
                 for service, account in sorted(report.accounts.items())])
    print(gateway.ctl("get", "services").stdout)
    problems = report.problems()
    if problems:
        raise CheckFailed("\n  ".join(["", *problems]))


def tell_what_to_try(network, gateway, manifests):
    client, ctl = network.namespace("client"), f"build/penstockctl --gateway {gateway.address}"
    first = FRONTENDS[0]
    print(f"""The gateway keeps running. Try:
  ip netns exec {client} curl http://{first.address}:{first.port}/
  ip netns exec {client} ping -c 3 {net.UPLINK}
  {ctl} get services
  {ctl} get connections
  {ctl} explain --proto tcp --src {net.CLIENT}:40000 --dst {first.address}:{first.port}
  {ctl} stats
  ip netns exec {network.namespace("gateway")} ip -br address
Edit {manifests}/*.yaml: a change is applied as the file is saved.
scripts/quickstart --stop ends it.
""")


def print_table(header, rows):
    rows = [tuple(str(cell) for cell in row) for row in (header, *rows)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(header))]
    for row in rows:
        print("  ".join([row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:]))]).rstrip())
    print()


def share(part, whole):
    return f"{100 * part / whole:.0f}%" if whole else "-"


if __name__ == "__main__":
    sys.exit(main())
