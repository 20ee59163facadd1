// SPDX-License-Identifier: Apache-2.0
// One captured packet at one point of its way, as a worker writes it and the control thread reads it.
#pragma once

#include <cstdint>

#include "dataplane/base/ids.hpp"
#include "dataplane/base/verdict.hpp"

namespace penstock::capture {

enum class Point : uint8_t {
    Rx,    // received from a NicPort, as it arrived
    Tx,    // given to the transmit queue of a NicPort, as it leaves
    Drop,  // dropped, as it was at that moment
    Host,  // from Linux through the twin, as it arrived; or for Linux
};
inline constexpr uint8_t kPoints = 4;

// A set of points.
struct Points {
    uint8_t bits = 0;
    [[nodiscard]] constexpr bool has(Point point) const noexcept {
        return (bits >> static_cast<uint8_t>(point) & 1) != 0;
    }
    constexpr void add(Point point) noexcept {
        bits = static_cast<uint8_t>(bits | 1U << static_cast<uint8_t>(point));
    }
    static constexpr Points all() noexcept { return {(1U << kPoints) - 1}; }
    constexpr bool operator==(const Points&) const = default;
};

// A connection of one worker. `life` differs between connections that use the same place of the table.
struct ConnectionName {
    ConnectionIndex index;
    uint32_t life = 0;
    constexpr bool operator==(const ConnectionName&) const = default;
};

// What a worker has decided about a packet. Ids are unset if they do not apply.
struct Finding {
    Verdict verdict = Verdict::None;
    DropReason reason{};  // if verdict is Drop
    WorkerId worker;      // that decided
    WorkerId receiver;    // on whose queue the packet arrived
    bool from_host = false;
    ServiceId service;  // of the connection, or else of the frontend
    BackendId backend;
    ConnectionName connection;
};

struct Record {
    uint64_t ticks = 0;        // reading of the TSC
    uint64_t lost_before = 0;  // records of this worker that were lost since its previous record
    uint32_t wire_bytes = 0;   // of the frame
    uint32_t bytes = 0;        // of these, recorded
    Point point = Point::Rx;
    NicPortId port;
    Finding finding;
};

}  // namespace penstock::capture
