// What travels with a packet from the worker that received it to the one that owns its flow: a few bits in the mbuf, next to nothing else,
// because the owner parses again (the frame is in cache by then, and a Parsed would have to be copied).
#pragma once

#include <cstdint>

#include "dataplane/base/ids.hpp"
#include "dataplane/base/limits.hpp"

namespace penstock::pipeline {

// A packet that has been handed on this often is going in circles: two candidate owners and a configuration that changed under way explain
// three, and an ICMP error may ask every worker besides (placement.hpp).
[[nodiscard]] constexpr uint32_t handoffs_max(uint32_t workers) noexcept {
    return 3 + workers;
}
static_assert(handoffs_max(limits::kWorkersMax) <= 0xff, "HandoffNote counts in a byte");

// A datagram of a worker's FragmentTable.
using DatagramIndex = Id<struct DatagramTag, uint16_t>;

struct HandoffNote {
    uint8_t tried = 0;     // candidates asked before, in turn (placement.hpp)
    uint8_t handoffs = 0;  // rings crossed
    WorkerId receiver{0};  // whose receive queue it came from
    bool ip_checksum_checked = false;
    bool from_host =
        false;  // Linux sent it through the twin of arrival's port: what is no flow's goes on to the wire
    // The fragment has waited for the first one of this datagram, with this worker, and holds the datagram until it is served
    // (fragment_table.hpp). Stays behind in a handoff.
    DatagramIndex waited_for;

    [[nodiscard]] constexpr bool has_waited() const noexcept { return waited_for.is_set(); }

    [[nodiscard]] constexpr uint32_t packed() const noexcept {
        return uint32_t{tried} | uint32_t{handoffs} << 8 | uint32_t{receiver.value} << 16 |
               uint32_t{ip_checksum_checked} << 24 | uint32_t{from_host} << 25;
    }
    static constexpr HandoffNote unpacked(uint32_t bits) noexcept {
        return {static_cast<uint8_t>(bits), static_cast<uint8_t>(bits >> 8),
                WorkerId{static_cast<uint8_t>(bits >> 16)}, (bits >> 24 & 1) != 0, (bits >> 25 & 1) != 0};
    }
};

}  // namespace penstock::pipeline
