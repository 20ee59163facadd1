# SPDX-License-Identifier: Apache-2.0
"""Associations of real SCTP stacks (tests/e2e/sctp_lab.py) continue through upgrades and kill -9."""
import os
import signal

from fixture import VIP, VIP_6, case, equal, until
from lab.network import BACKENDS
from overlap_cases import children, upgrade
from restart_cases import end, tables
from sctp_lab import HeldAssociation, begin, diameter


@case(policy=("Cluster", "Local"))
def an_sctp_association_survives_upgrades_and_kill_9_SCTP002(lab):
    """IPv4 with a translated source, IPv6 with the client's own."""
    policy = lab.variant["policy"]
    lab.gateway.more_options = ["--supervise", "on"]
    begin(lab, *diameter(policy=policy))
    until("the state is saved", lambda: os.path.exists(lab.gateway.state_file))
    with HeldAssociation(lab, VIP if policy == "Cluster" else VIP_6) as association:
        equal(association.by in BACKENDS, True, f"served by {association.by}")
        for what in ("an upgrade", "another upgrade", "kill -9"):
            if what == "kill -9":
                processes = children(lab)
                end(lab, signal.SIGKILL)
                # The gateway's process ends with its supervisor; until then it has the tables.
                until("the gateway's process has ended", lambda: not any(os.path.exists(f"/proc/{process}") for process in processes))
                lab.gateway.start_daemon()
            else:
                upgrade(lab)
            equal(tables(lab)["lost"], [], f"connections lost by {what}, by reason")
            equal(association.ask(), association.by, f"the server after {what}")
