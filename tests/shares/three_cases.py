# SPDX-License-Identifier: Apache-2.0
"""Three gateways, one of which is lost, drained, removed from the plan, added to it, upgraded or restarted, with
flows to VIPs of shares and to a spread VIP."""
import random
import signal

from copy_cases import counter
from fixture import case, check, equal, until
from lab import network as net
from split_cases import endpoint_and_source
from stray_cases import PREFERRED, REHASHES, rehash
from three_gateways import (SNAT_OF_SHARE, SPREAD_VIP, UPLINK_OF, AllFlows, begin, others_of, start_again, until_all_serve, until_complete,
                            until_copied, until_routes_of, write_plan)
from upkeep_cases import upgrade


def shares_of(gateway):
    """Numbers of the shares of which it is the primary."""
    return [int(share.get("number", 0)) for share in gateway.json("get", "shares") if share["primary"] == gateway.name]


def flows_of(flows, gateway):
    """The flows of the shares of which it is the primary. Endpoints see a SNAT address of the share."""
    snat = {SNAT_OF_SHARE[share] for share in shares_of(gateway)}
    return [flow for flow in flows.flows if endpoint_and_source(flow)[1] in snat]


@case(waits_s=30)
def one_of_three_gateways_is_lost_and_returns_and_the_router_rehashes(lab):
    begin(lab)
    lost, *others = lab.gateways
    with AllFlows(lab) as flows:
        flows.all_continue("at the beginning")
        until_copied(lab, lab.gateways)
        count = len(flows_of(flows, lost))
        check(count > 0, "no flow is of the gateway to lose")
        lost.end_daemon()
        moved_ms = until_routes_of(lab, others)
        flows.all_continue("after the loss")
        taken = sum(counter(gateway, "connections_taken_over") for gateway in others)
        check(taken >= count, f"the heirs have taken over {taken} of {count} connections")
        start_again(lab, lost)
        until_all_serve(lab)
        flows.all_continue("after the return")

        later = AllFlows(lab)
        chance = random.Random(1)
        with later:
            before = [counter(gateway, "strays_forwarded") for gateway in lab.gateways]
            for number in range(REHASHES):
                rehash(lab, SPREAD_VIP, UPLINK_OF.values(), chance)
                for each in (flows, later):
                    each.all_continue(f"after {number + 1} re-hashes")
            strays = [counter(gateway, "strays_forwarded") - former for gateway, former in zip(lab.gateways, before)]
            check(all(strays), f"packets that each gateway has forwarded: {strays}")
            lab.network.ip("client", f"route del {SPREAD_VIP}/32 {PREFERRED}")
            for each in (flows, later):
                each.all_continue("after the re-hashes")
    lab.remarks.append(f"{len(flows.flows)} flows, {count} of the lost gateway: 0 reset; the router had the heirs after {moved_ms:.0f} ms; "
                       f"{REHASHES} re-hashes of {len(flows.flows + later.flows)} flows: 0 reset, {sum(strays)} packets forwarded")


@case(waits_s=30)
def one_of_three_gateways_is_drained_removed_from_the_plan_and_added_again(lab):
    begin(lab)
    *stay, leaving = lab.gateways
    with AllFlows(lab) as flows:
        flows.all_continue("at the beginning")
        until_copied(lab, lab.gateways)
        own = shares_of(leaving)
        check(flows_of(flows, leaving), "no flow is of the gateway that leaves")
        equal(leaving.ctl("drain").returncode, 0, "exit code of drain")
        drained_ms = until_routes_of(lab, stay)
        flows.all_continue("during the drain")
        write_plan(lab, 2, without=(leaving.name,))
        for gateway in stay:
            until(f"{gateway.name} has the plan of two gateways", lambda gateway=gateway: leaving.name not in others_of(gateway), patience_s=60)
        until_routes_of(lab, stay)
        until_complete(lab, stay)
        flows.all_continue("after the removal")
        leaving.end_daemon(signal.SIGTERM)
        flows.all_continue("after the end of the removed gateway")

        later = AllFlows(lab)
        with later:
            later.all_continue("without the removed gateway")
            until_copied(lab, stay)
            leaving.table_dir = "off"  # a new machine has no connections
            start_again(lab, leaving)
            equal(leaving.ctl("undrain").returncode, 0, "exit code of undrain")
            write_plan(lab, 3)
            until_all_serve(lab)
            equal(shares_of(leaving), own, "shares of the added gateway")
            for each in (flows, later):
                each.all_continue("after the addition")
            taken = counter(leaving, "connections_taken_over")
            count = len(flows_of(flows, leaving) + flows_of(later, leaving))
            check(taken >= count, f"the added gateway has taken over {taken} of {count} connections")
    lab.remarks.append(f"{len(flows.flows + later.flows)} flows: 0 reset; the router followed the drain after {drained_ms:.0f} ms; the added "
                       f"gateway has taken over {taken} connections")


@case(waits_s=60)
def three_gateways_are_upgraded_and_restarted_in_turn(lab):
    begin(lab, share_age_s=3, options=["--supervise", "on"])
    lab.run.reserve_hugepages(lab.gateway.memory_mb)  # of a successor
    with AllFlows(lab) as flows:
        flows.all_continue("at the beginning")
        until_copied(lab, lab.gateways)
        for gateway in lab.gateways:
            upgrade(gateway)
            until_all_serve(lab)
            flows.all_continue(f"after the upgrade of {gateway.name}")
        for gateway in lab.gateways:
            gateway.end_daemon(signal.SIGTERM)
            start_again(lab, gateway)
            until_all_serve(lab)
            flows.all_continue(f"after the restart of {gateway.name}")
        first, *others = lab.gateways
        lab.announcer.kill()
        until_routes_of(lab, others)
        flows.all_continue(f"without the routing daemon of {first.name}")
        lab.announcer.start(announces=True)
        until_routes_of(lab, lab.gateways)
        flows.all_continue(f"after the restart of the routing daemon of {first.name}")
        first.sync.kill()
        first.sync.wait()
        first.start_sync(lab.manifests)
        until("penstock-sync has sent the state", lambda: first.ctl("--sync-server", first.sync_address, "get", "sync").returncode == 0
              and first.sync_status()["gateways"][0].get("full_states"), patience_s=60)
        flows.all_continue(f"after the restart of penstock-sync of {first.name}")
    lab.remarks.append(f"{len(flows.flows)} flows: 0 reset by 3 upgrades, 3 restarts of penstockd, and restarts of the other processes")
