# SPDX-License-Identifier: Apache-2.0
"""docs/deploy/node/penstockd-daemonset.yaml keeps connections over a roll: what must outlive a Pod is on the host, and
one node is replaced at a time. Its CPUs can be exclusive, and its probes are those of health.

deployment_test.py ROOT"""
import os
import re
import sys

try:
    import yaml
except ImportError:
    print("SKIP: no python3-yaml")
    sys.exit(77)

IN_MEMORY = ("/dev/shm/", "/run/", "/dev/hugepages/")
STOP_S = 10  # for the end of both programs, after preStop


def findings(document):
    spec = document["spec"]
    strategy = spec.get("updateStrategy", {})
    if strategy.get("type") != "RollingUpdate" or strategy.get("rollingUpdate") != {"maxUnavailable": 1}:
        yield f"updateStrategy is {strategy}: not one node at a time"
    pod = spec["template"]["spec"]
    (daemon,) = (container for container in pod["containers"] if container["name"] == "penstockd")
    options = dict(argument.removeprefix("--").split("=", 1) for argument in daemon["args"])
    volumes = {volume["name"]: volume for volume in pod["volumes"]}

    def on_host(path):
        """(path on the host, whether the container may write), or None if the path ends with the Pod."""
        mounts = [mount for mount in daemon["volumeMounts"] if (path + "/").startswith(mount["mountPath"] + "/")]
        if not mounts:
            return None
        mount = max(mounts, key=lambda each: len(each["mountPath"]))
        host = volumes[mount["name"]].get("hostPath")
        return host and (host["path"] + path.removeprefix(mount["mountPath"]), not mount.get("readOnly", False))

    # penstockd makes the last folder of --table-dir itself, with mode 0700.
    for option in ("table-dir", "state-file"):
        place = on_host(os.path.dirname(options[option]))
        if place is None or not place[1]:
            yield f"--{option}={options[option]} is not in a hostPath that penstockd may write"
        elif option == "table-dir" and not (place[0] + "/").startswith(IN_MEMORY):
            yield f"--table-dir is in {place[0]} on the host, which is not in memory"
    if on_host("/run/penstock") is None:
        yield "the locks of ports in /run/penstock end with the Pod"
    drain = daemon["lifecycle"]["preStop"]["exec"]["command"]
    (timeout_s,) = (int(match.group(1)) for word in drain if (match := re.fullmatch(r"--timeout=(\d+)", word)))
    if "--until-restart" not in drain:
        yield "preStop drains the next Pod too"
    if pod["terminationGracePeriodSeconds"] < timeout_s + STOP_S:
        yield f"terminationGracePeriodSeconds is less than {timeout_s} s of preStop and {STOP_S} s"
    if daemon.get("readinessProbe", {}).get("exec", {}).get("command") != ["penstockctl", "status"]:
        yield "a roll does not wait until penstockd is ready"
    for probe in ("startupProbe", "livenessProbe"):
        if daemon.get(probe, {}).get("httpGet", {}).get("path") != "/livez":
            yield f"{probe} is not /livez, which fails only for what a restart repairs"
    for container in pod["containers"]:
        if container["resources"]["requests"] != container["resources"]["limits"]:
            yield f"requests of {container['name']} differ from its limits: the Pod is not Guaranteed, and its CPUs are not exclusive"
    if not re.fullmatch(r"\d+", daemon["resources"]["limits"]["cpu"]):
        yield "penstockd has no whole CPUs"


def unknown_options(root):
    """Options of the manifests that the program does not have."""
    lists = {"penstockd": ("control/gateway/options/option_list.cpp", "control/options/option_set.cpp"),
             "penstock-sync": ("control/sync/option_list.cpp", "control/sync/policy_options.cpp", "control/options/option_set.cpp")}
    for manifest in ("node/penstockd-daemonset.yaml", "external/sync-deployment.yaml"):
        with open(os.path.join(root, "docs/deploy", manifest)) as file:
            (workload,) = yaml.safe_load_all(file)
        for container in workload["spec"]["template"]["spec"]["containers"]:
            (program,) = container["command"]
            known = "".join(open(os.path.join(root, path)).read() for path in lists[program])
            for argument in container["args"]:
                name = argument.removeprefix("--").split("=", 1)[0]
                if f'"{name}"' not in known and f'"{name},' not in known:
                    yield f"{program} has no option --{name}"


def main():
    path = os.path.join(sys.argv[1], "docs/deploy/node/penstockd-daemonset.yaml")
    with open(path) as file:
        documents = list(yaml.safe_load_all(file))
    (daemon_set,) = (document for document in documents if document["kind"] == "DaemonSet")
    found = [*findings(daemon_set), *unknown_options(sys.argv[1])]
    print("\n".join(f"{path}: {finding}" for finding in found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
