// SPDX-License-Identifier: Apache-2.0
// Status of address allocation by a leader: two pools, a shared and a reserved address, Services that have no
// address and a Service that keeps one although its request is refused.
#pragma once

#include "control/sync/addresses/address_status.hpp"

namespace penstock::sync::test {

[[nodiscard]] inline IpAddr address(const char* text) {
    return IpAddr::parse(text).value();
}

[[nodiscard]] inline AddressStatus example_addresses() {
    using ipam::RefusalReason;
    AddressStatus status;
    status.phase = "assigning";
    ipam::Pool internal;
    internal.name = "internal";
    internal.ranges = {{address("10.9.0.10"), address("10.9.0.20")}};
    internal.auto_assign = false;
    internal.avoid_buggy_ips = true;
    internal.priority = 5;
    internal.namespaces = {"shop", "tools"};
    internal.namespace_selector = annotations::Selector::parse("tier=web").value();
    internal.service_selector = annotations::Selector::parse("zone in (b,a)").value();
    internal.enforce = internal.internal = internal.disabled = internal.reassign = true;
    ipam::Pool open;
    open.name = "public";
    open.ranges = {{address("203.0.113.0"), address("203.0.113.255")},
                   {address("2001:db8:203::"), address("2001:db8:203::ffff:ffff:ffff:ffff")}};
    open.reservations = {{address("203.0.113.7"), {"shop", "web"}},
                         {address("203.0.113.8"), {"shop", "late"}},
                         {address("203.0.113.9"), {"shop", "none"}}};
    status.pools = {internal, open};
    status.usage = {{.pool = "internal", .v4 = {.total = 11, .used = 0, .free = 11}},
                    {.pool = "public",
                     .v4 = {.total = 256, .used = 2, .free = 253},
                     .v6 = {.total = UINT64_MAX, .used = 1, .free = UINT64_MAX - 1},
                     .reservations_in_use = {{address("203.0.113.8"), {"shop", "late"}}}}};
    status.pools_refused = "pools \"a\" and \"b\" overlap at 10.9.0.12";
    status.addresses[{"default", "gone"}] = {{address("198.51.100.1"), ""}};
    status.addresses[{"shop", "api"}] = {{address("203.0.113.8"), "public"}};
    status.addresses[{"shop", "web"}] = {{address("203.0.113.7"), "public"},
                                         {address("2001:db8:203::7"), "public"}};
    status.refused = {{{"default", "gone"}, RefusalReason::LoadBalancerIPConflict, "the annotation differs"},
                      {{"shop", "late"}, RefusalReason::AddressTaken, "203.0.113.8 is used by shop/api"},
                      {{"shop", "new"}, RefusalReason::NoPool, "no pool gives IPv4"},
                      {{"shop", "other"}, RefusalReason::NoPool, "no pool gives IPv6"}};
    status.writes = kube::WriteStatus{
        .leadership = {.is_leader = true, .holder = "sync-0", .transitions = 3},
        .services = {.written = 10, .conflicts = 1, .failed = 2, .pending = 4},
        .pools = {.written = 5, .rejected = 6, .forbidden = 7, .gone = 8, .cancelled = 9, .pending = 1}};
    return status;
}

}  // namespace penstock::sync::test
