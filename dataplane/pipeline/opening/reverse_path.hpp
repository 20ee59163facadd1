// SPDX-License-Identifier: Apache-2.0
// The reverse-path check of new flows (RFC 3704, ADR 0030): decides by the route to a packet's source whether
// the packet may arrive on its port. Pure. Not applied to packets of known flows, nor to packets that the
// gateway host sends.
#pragma once

#include <cstdint>

#include "dataplane/base/cpu.hpp"
#include "dataplane/config/snapshot.hpp"

namespace penstock::pipeline {

// Result of the check for a source and an arrival port.
enum class SourcePath : uint8_t {
    Ok,
    NoRoute,          // no route to the source through a port of the gateway
    OtherPort,        // --reverse-path strict: the route leads through other ports
    OtherSubnet,      // feasible: the source is in a subnet directly connected to other ports
    InsideElsewhere,  // feasible: the source is in a Pod CIDR, and its route leads through other ports
    // feasible: the source is an endpoint's address, and its route leads through other ports
    EndpointElsewhere
};

// For a source with a best route that does not lead through the arrival port.
[[nodiscard]] SourcePath judge_other_path(const config::Snapshot& snapshot, const IpAddr& source,
                                          NicPortId arrival) noexcept;

[[nodiscard]] PENSTOCK_ALWAYS_INLINE SourcePath source_path(const config::Snapshot& snapshot,
                                                            const IpAddr& source,
                                                            NicPortId arrival) noexcept {
    // The answer leaves by the port on which the packet came: accepted in every mode, and nearly always the
    // case.
    if ((snapshot.routes->ports_towards(source) >> arrival.value & 1) != 0) [[likely]] {
        return SourcePath::Ok;
    }
    return judge_other_path(snapshot, source, arrival);
}

}  // namespace penstock::pipeline
