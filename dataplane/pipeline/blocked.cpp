// SPDX-License-Identifier: Apache-2.0
#include "dataplane/pipeline/blocked.hpp"

#include "dataplane/packet/vlan.hpp"

namespace penstock::pipeline {

namespace {

// The frame holds no IP packet for classify: ARP and similar, which pass, or a VLAN frame.
PENSTOCK_NOINLINE void drop_if_blocked_behind_tags(const route::PrefixSet& blocked, Burst& burst,
                                                   uint32_t i) noexcept {
    const packet::BehindTags behind = packet::look_behind_tags(ByteView(burst.data[i], burst.length[i]));
    if (behind.are_too_many) {
        burst.drop(i, DropReason::TooManyTags);
    } else if (behind.source && blocked.contains(*behind.source)) {
        burst.drop(i, DropReason::SourceBlocked);
    }
}

}  // namespace

void drop_blocked(const route::PrefixSet& blocked, Burst& burst) noexcept {
    for (uint32_t i = 0; i < burst.count; ++i) {
        // A packet that is already dropped keeps its reason: a malformed frame has no source to look up.
        if (burst.verdict[i] == Verdict::Drop || burst.arrival[i].note.from_host) {
            continue;
        }
        if (burst.parsed[i].kind == packet::PacketKind::Other) [[unlikely]] {
            drop_if_blocked_behind_tags(blocked, burst, i);
        } else if (blocked.contains(burst.parsed[i].key.source)) {
            burst.drop(i, DropReason::SourceBlocked);
        }
    }
    PacketList left;
    for (uint32_t at = 0; at < burst.flows.count; ++at) {
        if (burst.under_way(burst.flows.at[at])) {
            left.add(burst.flows.at[at]);
        }
    }
    burst.flows = left;
}

}  // namespace penstock::pipeline
