// The reverse-path check of new flows (RFC 3704, ADR 0030): whether a packet may arrive by its port, judged by the route to its source.
// Pure. Not asked of packets of known flows, nor of what the gateway host sends.
#pragma once

#include <cstdint>

#include "dataplane/base/cpu.hpp"
#include "dataplane/config/snapshot.hpp"

namespace penstock::pipeline {

// What the check found of a source and an arrival port.
enum class SourcePath : uint8_t {
    Ok,
    NoRoute,          // no route to the source through a port of the gateway
    OtherPort,        // --reverse-path strict: the route leads through other ports
    OtherSubnet,      // feasible: the source is in a subnet directly connected to other ports
    InsideElsewhere,  // feasible: the source is in a Pod CIDR, and its route leads through other ports
    EndpointElsewhere  // feasible: the source is an endpoint's address, and its route leads through other ports
};

// For a source whose best route does not lead through the arrival port.
[[nodiscard]] SourcePath judge_other_path(const config::Snapshot& snapshot, const IpAddr& source,
                                          NicPortId arrival) noexcept;

[[nodiscard]] PENSTOCK_ALWAYS_INLINE SourcePath source_path(const config::Snapshot& snapshot,
                                                            const IpAddr& source,
                                                            NicPortId arrival) noexcept {
    // Where the packet came is where the answer goes: right by every mode, and nearly always so.
    if ((snapshot.routes->ports_towards(source) >> arrival.value & 1) != 0) [[likely]] {
        return SourcePath::Ok;
    }
    return judge_other_path(snapshot, source, arrival);
}

}  // namespace penstock::pipeline
