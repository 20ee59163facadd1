// SPDX-License-Identifier: Apache-2.0
// Shares of a worker's connection table. Connections are counted by Service (stats::ServiceCounters) and by
// the client's prefix (state/prefix_counts.hpp), when they open and when they end. Packets in between cost
// nothing. The counts are compared only when the table is full: neither a Service nor a prefix that holds
// most of it keeps the others out (docs/adr/0028).
#pragma once

#include <cstdint>

#include "dataplane/base/ids.hpp"
#include "dataplane/base/ip.hpp"
#include "dataplane/conn/aging.hpp"
#include "dataplane/conn/table.hpp"

namespace penstock::pipeline {

struct WorkerContext;

// Rates the connections of a full table for eviction in favour of a new connection of `service` from
// `client`. As conn::worth_of(), with two further rules.
//
// A long-lived UDP flow may be evicted (Worth::Surplus) if its Service holds more than twice what the new
// connection's Service would hold, or its prefix more than twice what the new connection's prefix would hold.
// Under a flood each other Service and each other prefix thus gets room until it holds half as much as the
// largest holder: a third of the table, if there are two. UDP has no sign that a client receives the answers.
// Established TCP and SCTP have one, so they are never evicted.
//
// A flow that is half-open, unanswered or brief, and younger than kHandshakeS, is not evicted for a new flow
// of a holder more than twice as large. Otherwise a flood would cycle through the whole table before the
// handshake is finished.
class FairShare {
 public:
    FairShare(const WorkerContext& ctx, ServiceId service, const IpAddr& client) noexcept;
    [[nodiscard]] conn::Appraisal appraise(const conn::Entry& connection) const noexcept;
    [[nodiscard]] conn::Appraiser appraiser() const noexcept {
        return {[](const void* self, const conn::Entry& connection) noexcept {
                    return static_cast<const FairShare*>(self)->appraise(connection);
                },
                this};
    }

 private:
    // One initial retransmission (RFC 6298, 2.1: 1 s) and an ordinary round trip.
    static constexpr uint32_t kHandshakeS = 3;
    // Fewer connections than this may belong to a single household. They never count as too many, whatever
    // others hold.
    static constexpr uint32_t kPrefixFloor = 16;

    [[nodiscard]] static bool is_larger(uint32_t holder, uint32_t other) noexcept {
        return holder / 2 > other;
    }

    const WorkerContext& ctx_;
    int32_t handshake_units_;
    // held by the new connection's Service and prefix, the new one included
    uint32_t of_service_, of_prefix_;
};

}  // namespace penstock::pipeline
