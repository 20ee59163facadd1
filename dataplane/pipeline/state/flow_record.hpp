// SPDX-License-Identifier: Apache-2.0
// The begin or the end of one connection, as a worker reports it to the thread that writes flow records
// (control/flow_records), and the queue between the two. Plain data of one size, without names: the reader
// resolves ids.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "dataplane/base/ids.hpp"
#include "dataplane/base/limits.hpp"
#include "dataplane/base/spsc_queue.hpp"
#include "dataplane/base/time.hpp"
#include "dataplane/conn/entry.hpp"
#include "dataplane/packet/flow_key.hpp"

namespace penstock::pipeline {

// What removes a connection from its table.
enum class Removal : uint8_t {
    Expired,    // aging: its idle timeout, or the rest after its close, is over
    Reopened,   // a new connection with its tuple begins, or another gateway serves it (superseded.hpp)
    Evicted,    // the table is full
    Reclaimed,  // every SNAT port towards its endpoint is taken
    Ordered,    // a flow order
};

// Why a connection has ended, as reported to users.
enum class FlowEnd : uint8_t {
    Closed,      // both sides have finished it: two FINs, or the end of an SCTP association
    Reset,       // a RST has passed
    Idle,        // no packet for its idle timeout
    Unanswered,  // the same, and the endpoint has never answered
    Ended,       // its endpoint or frontend is gone
    Replaced,    // the client has begun another connection with the same tuple
    Evicted,     // removed for another connection, because the table was full
    Reclaimed,   // removed for another connection that needed its SNAT port
};
inline constexpr size_t kFlowEnds = 8;

// "closed", "reset", "idle", "unanswered", "ended", "replaced", "evicted", "reclaimed"
[[nodiscard]] std::string_view to_string(FlowEnd end) noexcept;

// A connection that its sides have closed or reset has ended by that, whatever removes its entry later.
[[nodiscard]] FlowEnd flow_end_of(const conn::Entry& connection, Removal removal) noexcept;

// What has passed in one direction. Bytes are those of IP packets.
struct FlowCount {
    uint64_t packets = 0;
    uint64_t bytes = 0;
    bool operator==(const FlowCount&) const = default;
};

struct FlowRecord {
    enum class Event : uint8_t { Begin, End };

    packet::FlowKey forward;  // client -> frontend
    packet::FlowKey reverse;  // backend -> SNAT address, or backend -> client if the source is kept
    TscTime at;               // of the event, on the worker's timeline
    TscTime started;          // first packet; of an adopted connection to 1/16 s
    TscTime last;             // last packet that passed
    ServiceId service;
    BackendId backend;
    // Identifies the connection together with `worker` and `started`: the number of this life of its entry.
    uint32_t life = 0;
    WorkerId worker;
    Event event = Event::Begin;
    FlowEnd end = FlowEnd::Closed;  // of Event::End
    // The connection was opened by a former process: no Begin of this process, and `passed` begins with the
    // adoption.
    bool is_adopted = false;
    std::array<FlowCount, 2> passed{};  // by conn::Direction
};
static_assert(std::is_trivially_copyable_v<FlowRecord>);

// A record with its times in milliseconds since 1970.
struct TimedFlowRecord {
    FlowRecord record;
    int64_t at_ms = 0;
    int64_t started_ms = 0;
    int64_t last_ms = 0;
};

using FlowRecordQueue = SpscQueue<FlowRecord, limits::kFlowRecordsWaiting>;

}  // namespace penstock::pipeline
