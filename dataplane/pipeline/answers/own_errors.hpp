// SPDX-License-Identifier: Apache-2.0
// ICMP errors that the gateway itself sends about packets that it cannot forward (ICMP-004, ICMP-006). The
// packet is turned into the error in its own buffer and returns to its sender. ADR 0026 explains the choice
// of the source address.
//
// No error is sent about ICMP, non-first fragments, multicast and broadcast packets, and sources that do not
// name a single host. The rate is limited by the kind of error and by the prefix of the sender (REJ-003,
// prefix_limiter.hpp). A packet that gets no answer is dropped. The reason is the one for which it could not
// be forwarded, the rate limit, or the obstacle that keeps the answer from leaving.
//
// Callers: track and new_flow call send_time_exceeded(); forward (exceed_mtu()) and other_family call
// send_too_big(). Both forward the error by forward_one(), which calls send_too_big() again if the error
// exceeds the MTU of its own hop and must not be fragmented. burst.answers[i], set before the error is
// forwarded, ends this recursion: send_too_big() drops an answer. At most one error is built for a packet,
// which an assertion verifies.
#pragma once

#include "dataplane/pipeline/state/burst.hpp"
#include "dataplane/pipeline/state/context.hpp"

namespace penstock::pipeline {

// The time to live of packet i expires here. The packet is not translated yet.
PENSTOCK_NOINLINE void send_time_exceeded(WorkerContext& ctx, Burst& burst, uint32_t i) noexcept;

// Content of a packet's frame. parsed[i] always describes the packet as it arrived.
enum class Frame : uint8_t { AsArrived, Translated };

// Packet i exceeds `mtu`, in IP bytes for its family, and must not be fragmented. No error is sent about a
// packet that has already been converted to the other family: its size is checked before the conversion
// (other_family.hpp).
PENSTOCK_NOINLINE void send_too_big(WorkerContext& ctx, Burst& burst, uint32_t i, uint16_t mtu,
                                    Frame frame) noexcept;

// Source address of an error about a packet of `key`, as the sender of the packet shall see it: the
// destination of the packet if the error speaks for the destination, otherwise the gateway's own address as a
// router, if it has one of that family.
[[nodiscard]] IpAddr error_source(const config::Snapshot& snapshot, const packet::FlowKey& key,
                                  bool speaks_for_destination) noexcept;

}  // namespace penstock::pipeline
