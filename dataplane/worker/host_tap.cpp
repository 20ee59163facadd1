// SPDX-License-Identifier: Apache-2.0
#include "dataplane/worker/host_tap.hpp"

#include "dataplane/packet/parse.hpp"

namespace penstock::worker {

bool HostTap::selects(ByteView frame) const noexcept {
    if (!options_.points.has(capture::Point::Drop) || options_.services ||
        !options_.filter.matches(frame.data(), static_cast<uint32_t>(frame.size()))) {
        return false;
    }
    if (!options_.client) {
        return true;
    }
    packet::Parsed parsed;
    return packet::parse(frame, parsed, packet::IpChecksum::KnownGood) &&
           parsed.kind != packet::PacketKind::Other &&
           (parsed.key.source == *options_.client || parsed.key.destination == *options_.client);
}

void HostTap::dropped(NicPortId port, DropReason reason, ByteView frame, uint64_t ticks) noexcept {
    if (!selects(frame)) {
        return;
    }
    ring_.stage({.ticks = ticks,
                 .wire_bytes = static_cast<uint32_t>(frame.size()),
                 .point = capture::Point::Drop,
                 .port = port,
                 .finding = {.verdict = Verdict::Drop,
                             .reason = reason,
                             .from_host = reason != DropReason::PuntFailed}},
                frame.data());
    ring_.publish();
}

}  // namespace penstock::worker
