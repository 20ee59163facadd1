// SPDX-License-Identifier: Apache-2.0
// ICMP and ICMPv6 errors about packets that the gateway has sent (ICMP-001..003, -005). The quoted packet is
// reversed and looked up like a packet that arrives from the direction of the error. The error is then
// forwarded like such a packet, and its quote is translated back to the packet that the receiver had sent.
//
//        client ---- VIP [gateway] SNAT ---- router ---- endpoint
//               <- VIP: "client -> VIP"     <- endpoint: "SNAT -> endpoint"  endpoint's address: now the VIP
//               <- router: "client -> VIP"  <- router: "SNAT -> endpoint"    router's address: kept
//
// If client and endpoint are of different families, the error is converted (RFC 7915), and a router's address
// is replaced by the gateway's.
//
// An error neither keeps a connection alive nor opens one. It is not subject to source ranges (SRC-006): it
// is accepted because its flow exists. An error that belongs to no flow is dropped, unless it may concern a
// connection of the gateway host itself.
#pragma once

#include "dataplane/pipeline/state/burst.hpp"
#include "dataplane/pipeline/state/context.hpp"

namespace penstock::pipeline {

// Packet i is an IcmpRole::Error.
void serve_error(WorkerContext& ctx, Burst& burst, uint32_t i) noexcept;

}  // namespace penstock::pipeline
