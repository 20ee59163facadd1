// ICMP errors that the gateway itself sends about packets that it cannot forward (ICMP-004, ICMP-006): the packet becomes the error, in its
// own buffer, and goes back to its sender. ADR 0026 says from which address, and why.
//
// Never about ICMP, fragments other than the first, groups, and sources that name no single host; and no more often than the limit of the
// sort and of the sender's prefix allows (REJ-003, prefix_limiter.hpp). What gets no answer is dropped for the reason that it could not be
// forwarded for, for the limit, or for what keeps the answer from leaving.
#pragma once

#include "dataplane/pipeline/state/burst.hpp"
#include "dataplane/pipeline/state/context.hpp"

namespace penstock::pipeline {

// Packet i, whose time to live ends here. It is not translated yet.
PENSTOCK_NOINLINE void tell_expired(WorkerContext& ctx, Burst& burst, uint32_t i) noexcept;

// What a packet's frame holds: parsed[i] describes what arrived.
enum class Frame : uint8_t { AsArrived, Translated };

// Packet i is longer than a packet of its family may be, `mtu` IP bytes, and must not be cut. Nobody is told of what has been converted to
// the other family: whether it fits is found out before (other_family.hpp).
PENSTOCK_NOINLINE void tell_too_big(WorkerContext& ctx, Burst& burst, uint32_t i, uint16_t mtu,
                                    Frame frame) noexcept;

// Where an error about a packet of `key` comes from, as its sender shall see it: the destination, where the error speaks for that, else the
// gateway as a router, where it has an address of that family.
[[nodiscard]] IpAddr error_source(const config::Snapshot& snapshot, const packet::FlowKey& key,
                                  bool speaks_for_destination) noexcept;

}  // namespace penstock::pipeline
