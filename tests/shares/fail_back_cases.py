# SPDX-License-Identifier: Apache-2.0
"""--share-fail-back off: a primary that was away serves again when its operator commands it."""
from copy_cases import copied_flows, lose_and_continue
from fixture import case, check, equal, until
from two_gateways import VIA_FIRST, VIA_SECOND, Killed, route_to_other_uplink, until_via


def roles(gateway):
    return [(share["role"], bool(share.get("returns")), bool(share.get("held"))) for share in gateway.json("get", "shares")]


@case()
def a_primary_without_automatic_fail_back_waits_for_the_command(lab):
    with copied_flows(lab) as flows:
        lose_and_continue(lab, flows, Killed)
        # The command is refused while the primary cannot reach the heir.
        lab.network.ip("gateway-2", "link set peers down")
        lab.gateway.more_options = [*lab.gateway.more_options, "--share-fail-back", "off"]
        lab.gateway.start_daemon()
        route_to_other_uplink(lab)
        refused = lab.gateway.ctl("fail-back")
        check(refused.returncode != 0 and "share 0 waits for copies of all connections of gateway edge-2" in refused.stderr,
              f"refusal: {refused.stderr}")
        lab.network.ip("gateway-2", "link set peers up")
        until("the primary only waits for the command", lambda: roles(lab.gateway) == [("primary", True, True), ("heir", False, False)],
              patience_s=60)
        check("1 await penstockctl fail-back" in lab.gateway.ctl("status").stdout, "status")
        flows.until_all_answered()
        until_via(lab, VIA_SECOND)
        done = lab.gateway.ctl("fail-back")
        equal((done.returncode, done.stdout), (0, "share 0: announced as the primary (metric 100)\n"), "fail-back")
        until_via(lab, VIA_FIRST)
        flows.until_all_answered()
        equal(flows.findings(), {}, "flows that did not continue as they began")
    equal(lab.gateway.ctl("fail-back").stdout, "no share waits: this gateway has returned to all shares of which it is the primary\n",
          "a second command")
