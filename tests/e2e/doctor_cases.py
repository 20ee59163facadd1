# SPDX-License-Identifier: Apache-2.0
"""penstockctl doctor: a machine, its namespaces, and the commands that mend what it finds."""
import json
import socket

from fixture import case, check, equal
from lab.network import inside
from manifests import endpoints, service


def ini_of(lab, *more):
    """The options of the lab's penstockd as an INI file."""
    words = lab.gateway.daemon_words()[1:]
    path = lab.run.file("penstockd.ini")
    with open(path, "w") as file:
        for name, value in zip(words[::2], words[1::2]):
            file.write(f"{name.removeprefix('--')} = {value}\n")
        file.write("".join(f"{line}\n" for line in more))
    return path


def examined(lab, *words):
    """(exit code, [finding]) of doctor in the gateway's namespace."""
    done = lab.network.run("gateway", lab.gateway.program("penstockctl"), "doctor", *words, "-o", "json")
    check(done.returncode in (0, 1, 2) and not done.stderr, f"doctor ended with {done.returncode}: {done.stderr}")
    answer = json.loads(done.stdout)
    codes = {"ok": 0, "unknown": 0, "warning": 1, "fault": 2}
    equal(done.returncode, max(codes[finding["result"]] for finding in answer["findings"]), "exit code")
    return done.returncode, answer["findings"]


def results(findings, name):
    return {finding["object"]: finding["result"] for finding in findings if finding["check"] == name}


@case()
def doctor_examines_any_machine(lab):
    lab.build_network()
    code, findings = examined(lab)
    names = {finding["check"] for finding in findings}
    check(len(names) == 20, f"checks: {sorted(names)}")
    check(all(finding["text"] for finding in findings), "a finding has no text")
    text = lab.network.run("gateway", lab.gateway.program("penstockctl"), "doctor")
    equal(text.returncode, code, "exit code of the table")
    equal(len([line for line in text.stdout.splitlines() if line.split()[0] in ("ok", "unknown", "warning", "fault")]),
          len(findings), "lines of the table")


@case()
def doctor_finds_offloads_of_a_veth_and_its_command_mends_them(lab):
    lab.build_network()
    # A pair with both ends here. The kernel switches offloads on.
    lab.network.ip("gateway", "link add doc0 type veth peer name doc1\nlink set doc0 up\nlink set doc1 up")
    ini = ini_of(lab, "port = device=net_af_packet9,iface=doc0;twin=pendoc")
    code, findings = examined(lab, ini)
    offloads = results(findings, "offloads")
    equal(code, 2, "exit code with a fault")
    equal((offloads["doc0"], offloads["doc1"]), ("warning", "fault"), "results of both ends")
    equal(offloads["gw-up"], "unknown", "result of an end in another namespace")
    equal(results(findings, "configuration")[ini], "ok", "result of the options")
    for finding in findings:
        if finding["check"] == "offloads" and finding["object"].startswith("doc"):
            mended = lab.network.run("gateway", "sh", "-c", finding["commands"][0])
            equal(mended.returncode, 0, f"exit code of {finding['commands'][0]}: {mended.stderr}")
    offloads = results(examined(lab, ini)[1], "offloads")
    equal((offloads["doc0"], offloads["doc1"]), ("ok", "ok"), "results after the commands")


@case()
def doctor_names_the_program_that_has_a_port_and_the_mistake_of_an_option(lab):
    lab.build_network()
    with inside(lab.network.namespace("gateway")):
        other = socket.create_server(("127.0.0.1", 9105))
    with other:
        ports = {finding["object"]: finding for finding in examined(lab, ini_of(lab))[1] if finding["check"] == "ports"}
        metrics = ports["--metrics-listen 127.0.0.1:9105"]
        equal(metrics["result"], "fault", "result of a port in use")
        check("python" in metrics["text"], metrics["text"])
        equal(ports["--healthz 0.0.0.0:10256"]["result"], "ok", "result of a free port")
    code, findings = examined(lab, ini_of(lab, "burst = 65"))
    equal(code, 2, "exit code")
    check(any("--burst" in finding["text"] for finding in findings if finding["check"] == "configuration"), findings[0]["text"])


@case()
def doctor_beside_a_running_gateway(lab):
    lab.start(service("web", external_ips=["80.11.12.10"]), endpoints("web"))
    _, findings = examined(lab, ini_of(lab))
    for name in ("ports", "interface"):
        equal(set(results(findings, name).values()), {"ok"}, f"results of {name}: {findings}")
    check(any("running penstockd" in finding["text"] for finding in findings if finding["check"] == "ports"), "the owner is not named")
