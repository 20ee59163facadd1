// SPDX-License-Identifier: Apache-2.0
#include "dataplane/packet/restore.hpp"

#include "dataplane/packet/rewrite.hpp"

namespace penstock::packet {

void restore(std::span<uint8_t> frame, const Parsed& parsed) noexcept {
    // The reversal is a translation too, from the frame's current values to the original ones. Both
    // translations decremented the TTL, so two hops are added back.
    apply(frame, parsed,
          {parsed.key.source, parsed.key.destination, parsed.key.source_port, parsed.key.destination_port});
    uint8_t* const ip_at = frame.data() + parsed.l3_offset;
    if (parsed.family == IpFamily::V4) {
        uint8_t* const sum_at = ip_at + offsetof(Ipv4Header, checksum);
        ip_at[offsetof(Ipv4Header, ttl)] = parsed.ttl;
        store(sum_at, (kOneHopDelta + kOneHopDelta).inverse().applied_to(load<Be16>(sum_at)));
    } else {
        ip_at[offsetof(Ipv6Header, hop_limit)] = parsed.ttl;
    }
}

}  // namespace penstock::packet
