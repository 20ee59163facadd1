# SPDX-License-Identifier: Apache-2.0
"""penstockctl with a context file: one gateway by its name, and one command at all of them."""
import json
import os

from fixture import VIP, case, check, equal
from manifests import endpoints, service


@case()
def a_context_file_names_gateways_and_one_command_runs_at_all(lab):
    lab.start(service("web", external_ips=[VIP]), endpoints("web"))
    lab.answered_by(3)
    home = lab.run.file("home")
    os.makedirs(os.path.join(home, "penstock"))
    path = os.path.join(home, "penstock/contexts.ini")
    with open(path, "w") as file:
        file.write(f"context = edge-2\n[edge-1]\ngateway = {lab.gateway.address}\n[edge-2]\ngateway = unix:{lab.run.file('nobody.sock')}\n"
                   f"[again]\ngateway = {lab.gateway.address}\nsync-server = {lab.gateway.sync_address}\n")

    def ctl(*words, code=0, variables=(f"XDG_CONFIG_HOME={home}",)):
        done = lab.network.run("gateway", "env", "-u", "PENSTOCK_GATEWAY", *variables, lab.gateway.program("penstockctl"), *words)
        equal(done.returncode, code, f"exit code of {' '.join(words)}: {done.stdout}{done.stderr}")
        return done
    check("edge-1" in ctl("get", "contexts").stdout, "get contexts lists no edge-1")
    ctl("status", code=3)  # the default context
    ctl("status", "--context", "edge-1")
    ctl("status", "--gateway", lab.gateway.address)
    ctl("status", variables=(f"XDG_CONFIG_HOME={home}", f"PENSTOCK_GATEWAY={lab.gateway.address}"))
    check("Source:" in ctl("get", "sync", "--context", "again").stdout, "get sync has no source")

    asked = ctl("get", "svc", "--all-gateways", code=3)
    header, *rows = asked.stdout.splitlines()
    equal(header.split()[:3], ["GATEWAY", "NAMESPACE", "NAME"], "columns")
    equal([row.split()[:3] for row in rows], [["edge-1", "default", "web"], ["again", "default", "web"]], "rows")
    check(asked.stderr.startswith("penstockctl: edge-2: penstockd is not reachable"), f"errors: {asked.stderr}")
    answers = json.loads(ctl("get", "backends", "--all-gateways", "-o", "json", code=3).stdout)
    equal([(one["gateway"], len(one.get("answer", ()))) for one in answers], [("edge-1", 3), ("edge-2", 0), ("again", 3)], "answers")
    check("not reachable" in answers[1]["error"], f"error: {answers[1]}")

    with open(path, "w") as file:
        file.write(f"[edge-1]\ngateway = {lab.gateway.address}\n")
    text = ctl("status", "--all-gateways", variables=(f"PENSTOCK_CONFIG={path}",)).stdout
    check(text.startswith("== edge-1 ==\nGateway:"), f"status: {text}")
    ctl("drain", "--all-gateways", "--config", path, code=2)
    ctl("status", "--context", "edge-9", "--config", path, code=2)
    ctl("help", "nothing", code=2)
