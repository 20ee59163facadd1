# SPDX-License-Identifier: Apache-2.0
"""penstockd is replaced by one whose tables have another layout, and the way back: connections continue. Neither
build has the layout of the other one; the file of tables describes it."""
import itertools
import os
import time

from fixture import Skip, case, check, equal
from kept_flows import KeptFlows
from restart_cases import end, open_flows, pinned_endpoint, start, tables

other_folder = None  # folder of the penstockd with the other layout (run.py --other-layout)
LAYOUT, OTHER_LAYOUT = 6, 1006  # conn::detail::Header::kVersion of both
FLOWS = 100
CHANGES = int(os.environ.get("PENSTOCK_LAYOUT_CHANGES", "6"))  # 10 by hand


def replace(lab, folder, workers):
    end(lab)
    lab.gateway.daemon_folder = folder
    lab.gateway.set_workers(workers)
    lab.gateway.start_daemon()


@case(workers=(1, 2))
def connections_survive_an_upgrade_to_another_layout_and_the_way_back(lab):
    if other_folder is None:
        raise Skip("needs a penstockd with another layout of tables: run.py --other-layout")
    start(lab)
    flows = KeptFlows(lab)
    open_flows(lab, flows, FLOWS)
    with flows:
        flows.until_all_answered()
        mine = pinned_endpoint(lab)
        own_folder = lab.gateway.daemon_folder
        workers = lab.variant["workers"]
        steps = itertools.cycle(((other_folder, workers, LAYOUT), (other_folder, workers, None), (own_folder, workers, OTHER_LAYOUT),
                                 (other_folder, 3 - workers, LAYOUT), (own_folder, 3, OTHER_LAYOUT), (own_folder, workers, None)))
        for step, (folder, number, converted_from) in enumerate(itertools.islice(steps, CHANGES)):
            replace(lab, folder, number)
            flows.until_all_answered()
            equal(flows.findings(), {}, f"flows that changed in step {step}")
            status = tables(lab)
            equal(status["lost"], [], f"connections lost in step {step}, by reason")
            equal(status.get("converted_from"), converted_from, f"layout that was converted in step {step}")
            check(int(status["adopted"]) >= FLOWS, f"step {step}: {status['adopted']} connections adopted")
            equal(int(status["affinity_lost"]), 0, f"clients with session affinity lost in step {step}")
            equal(pinned_endpoint(lab), mine, f"endpoint of the pinned client in step {step}")
    text = lab.gateway.ctl("status").stdout
    conversion = f"converted from table layout {converted_from}" if converted_from else ""
    check("connections adopted in" in text and conversion in text and bool(conversion) == ("converted" in text),
          f"status of the last step:\n{text}")


@case()
def an_upgrade_that_is_killed_leaves_a_file_that_both_builds_read(lab):
    if other_folder is None:
        raise Skip("needs a penstockd with another layout of tables: run.py --other-layout")
    start(lab)
    flows = KeptFlows(lab)
    open_flows(lab, flows, 40)
    with flows:
        flows.until_all_answered()
        own_folder = lab.gateway.daemon_folder
        for delay_ms in (100, 300, 500, 800):  # any moment of the start is right
            end(lab)
            lab.gateway.daemon_folder = other_folder
            daemon = lab.network.start("gateway", lab.gateway.daemon_words(), "penstockd.log")
            time.sleep(delay_ms / 1000)
            daemon.kill()
            daemon.wait()
            lab.gateway.daemon_folder = own_folder
            lab.gateway.start_daemon()
            flows.until_all_answered()
            equal(flows.findings(), {}, "flows that changed")
            equal(tables(lab)["lost"], [], "connections lost, by reason")
