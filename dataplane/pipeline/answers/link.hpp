// SPDX-License-Identifier: Apache-2.0
// ARP and neighbour discovery about VIPs that workers answer for (config::Snapshot::link_vips). The worker
// that receives a query answers it, on the link that it came from. All other ARP and neighbour discovery is
// for Linux, which resolves the gateway's own next hops.
#pragma once

#include "dataplane/pipeline/state/burst.hpp"
#include "dataplane/pipeline/state/context.hpp"

namespace penstock::pipeline {

// Whether packet i is such a message about a VIP of the port that it arrived on. The VIP must be in the
// frontend table now, unless it is a SNAT address of a share, and must not be an address of the host. False
// for frames that Linux sent.
[[nodiscard]] bool is_about_link_vip(const WorkerContext& ctx, const Burst& burst, uint32_t i) noexcept;

// Packet i is such a message. A query or probe becomes its answer. A claim of another host is counted
// (Counter::VipConflicts) and passed to Linux, unless it was sent to a VIP (VipPortClosed).
// BadLinkMessage: the message is malformed. NoBuffer: its buffer is too small.
void serve_link_message(WorkerContext& ctx, Burst& burst, uint32_t i) noexcept;

}  // namespace penstock::pipeline
