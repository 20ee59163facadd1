// Segments that a worker sends of its own accord, collected until the round's end: they have no packet whose buffer they could take, and
// the stages know no other buffers.
#pragma once

#include <array>
#include <cstdint>

#include "dataplane/base/ids.hpp"
#include "dataplane/base/ip.hpp"
#include "dataplane/base/limits.hpp"
#include "dataplane/base/time.hpp"
#include "dataplane/packet/reset.hpp"

namespace penstock::pipeline {

struct WorkerContext;

struct OwnSegment {
    std::array<uint8_t, packet::kBareSegmentBytesMax> frame;
    uint16_t length = 0;
    NicPortId egress;
    bool to_host = false;  // goes to the twin of `egress`
};

struct OwnSegments {
    uint32_t count = 0;
    std::array<OwnSegment, limits::kOwnSegmentsMax> at;
    // The next hop that was asked for last, and when: a dead endpoint's many flows ask once a second, not each.
    IpAddr asked_for;
    TscTime asked_at;
    [[nodiscard]] uint32_t room() const noexcept { return static_cast<uint32_t>(at.size()) - count; }
};

// Adds a segment from key.source to key.destination. False where it cannot leave now: no room, no route, or a next hop that Linux is asked
// for meanwhile. It is never held, because what waits for next hops are other people's packets; whoever needs it sends it again.
bool send_segment(WorkerContext& ctx, const packet::FlowKey& key, packet::SegmentNumbers numbers,
                  packet::TcpFlags flags) noexcept;
// The same of an ABORT with the receiver's verification tag.
bool send_abort(WorkerContext& ctx, const packet::FlowKey& key, uint32_t tag) noexcept;

}  // namespace penstock::pipeline
