# SPDX-License-Identifier: Apache-2.0
"""kube-proxy as oracle: sends the same first packets through Penstock and through the kernel as programmed by
a real kube-proxy, with the same API server and the same random Services, slices and Nodes. The endpoint of a
packet, its addresses, or the kind of refusal must be equal, or differ by a choice that docs/semantics.md
lists.

run.py --build DIR [--filter REGEX] [--counts FILE] [--list] [--server NAME] [--minutes N] [--seed N]
[--worlds N]"""
import os
import sys
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [HERE, os.path.join(ROOT, "tests"), os.path.join(ROOT, "tests/e2e"), os.path.join(ROOT, "tests/cluster"), os.path.join(ROOT, "scripts")]

import runner  # noqa: E402
from bed import OracleLab, kube_proxy_runs  # noqa: E402
from compare import choice_behind, outcomes_of, text_of  # noqa: E402
from lab import state  # noqa: E402
from testbed import api_servers  # noqa: E402
from testbed.cluster import Cluster  # noqa: E402
from world import World  # noqa: E402

CASE_TIMEOUT_S = 600
WORLDS_PER_CASE = 4
CASES = ("random_clusters_look_the_same_through_both_GEN006_SVC001_EP020_ETP001_ETP003_ETP009_SRC001_TOPO008_NAT002_NAT003_REJ001",)


class _Case:
    variant = {}


def main():
    parser = runner.parser()
    parser.add_argument("--server", choices=("current", "1.20"))
    parser.add_argument("--minutes", type=float, default=60, help="for building what is not there")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--worlds", type=int, default=WORLDS_PER_CASE)
    options = parser.parse_args()
    suite = runner.Runner(options, CASE_TIMEOUT_S)
    names = [name for name in (api_servers.names() if not options.server else (options.server,)) if suite.chooses(f"{name} {CASES[0]}")]
    if options.list:
        print("\n".join(f"{name} {CASES[0]}" for name in names))
        return 0
    suite.begin()
    deadline = time.monotonic() + 60 * options.minutes
    for name in names:
        began = time.monotonic()
        try:
            if os.geteuid() != 0:
                raise api_servers.NotToBeHad("network namespaces need root")
            server = api_servers.obtain(name, deadline)
            if why := kube_proxy_runs(server):
                raise api_servers.NotToBeHad(why)
        except api_servers.NotToBeHad as why:
            suite.tell("SKIP", f"{name} kube-proxy", began, str(why))
            continue
        run_against(suite, server, options)
    return suite.end()


def run_against(suite, server, options):
    began, run = time.monotonic(), state.Run.start("apiserver")
    try:
        cluster = Cluster(run, server)
        cluster.start()
        cluster.grant(os.path.join(ROOT, "docs/deploy/common/rbac.yaml"))
        print(f"{server.name}: kube-proxy {cluster.server_version} ({server.origin}), ready after {time.monotonic() - began:.0f} s", flush=True)
        suite.run(f"{server.name} {CASES[0]}", lambda lab: compare_worlds(lab, options.seed, options.worlds),
                  lambda: OracleLab(cluster, suite.build, _Case, 0))
    except Exception:
        suite.tell("FAIL", f"{server.name} API server", began, f"\n{traceback.format_exc()}")
    finally:
        run.undo()


def compare_worlds(lab, first_seed, count):
    lab.start()
    asked, choices, differences = 0, {}, []
    for seed in range(first_seed, first_seed + count):
        world = World(seed, lab.kube_namespace, lab.cluster.version, lab.pod_addresses(200, first=seed % 20 * 300))
        services = lab.show(world, seed)
        targets = [target for service in services for target in world.targets(service)]
        penstock, proxy = outcomes_of(lab, targets)
        for target in targets:
            asked += 1
            if penstock[target] == proxy[target]:
                continue
            if choice := choice_behind(target, penstock[target], proxy[target], world):
                choices[choice] = choices.get(choice, 0) + 1
            else:
                differences.append(f"seed {seed}: {text_of(target, penstock[target], proxy[target])}\n{world.text_of(target.what.split()[0])}")
    by_choice = [f"{number} by choice {name}" for name, number in sorted(choices.items())]
    lab.remarks.append(", ".join([f"{count} worlds, {asked} ways in, {asked - sum(choices.values()) - len(differences)} equal", *by_choice]))
    if differences:
        raise AssertionError(f"{lab.remarks[-1]}, {len(differences)} different:\n" + "\n".join(differences))


if __name__ == "__main__":
    sys.exit(main())
