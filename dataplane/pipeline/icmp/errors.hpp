// ICMP and ICMPv6 errors about packets that the gateway has sent (ICMP-001..003, -005). The quoted packet is turned round and looked up
// like one that came the error's way; then the error goes where such a packet goes, and quotes what its receiver had sent.
//
//        client ---- VIP [gateway] SNAT ---- router ---- endpoint
//               <- VIP: "client -> VIP"      <- endpoint: "SNAT -> endpoint"          the endpoint's address becomes the VIP,
//               <- router: "client -> VIP"   <- router: "SNAT -> endpoint"            a router's stays its own
//
// Where client and endpoint are of different families, the error is converted (RFC 7915), and a router's address becomes the gateway's.
//
// An error does not keep a connection alive, opens none, and is of no concern to source ranges (SRC-006): that its flow exists is what lets
// it in. One about no flow is dropped, unless it may be about a connection of the gateway host itself.
#pragma once

#include "dataplane/pipeline/state/burst.hpp"
#include "dataplane/pipeline/state/context.hpp"

namespace penstock::pipeline {

// Packet i is an IcmpRole::Error.
void serve_error(WorkerContext& ctx, Burst& burst, uint32_t i) noexcept;

}  // namespace penstock::pipeline
