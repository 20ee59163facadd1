// SPDX-License-Identifier: Apache-2.0
#include "dataplane/pipeline/flow_records.hpp"

#include <array>

#include "dataplane/conn/sctp_state.hpp"
#include "dataplane/conn/tcp_state.hpp"

namespace penstock::pipeline {
namespace {

constexpr std::array<std::string_view, kFlowEnds> kEndNames{"closed", "reset",    "idle",    "unanswered",
                                                            "ended",  "replaced", "evicted", "reclaimed"};

FlowRecord record_of(const WorkerContext& ctx, ConnectionIndex index, FlowRecord::Event event) noexcept {
    const conn::Entry& entry = ctx.connections.at(index);
    const FlowLog::Flow& flow = ctx.flow_log->flows[index.value];
    return {.forward = entry.key(conn::Direction::Forward),
            .reverse = entry.key(conn::Direction::Reverse),
            .at = ctx.now,
            .started = flow.started,
            .last = flow.last,
            .service = entry.service,
            .backend = entry.backend,
            .life = entry.generation,
            .worker = ctx.self,
            .event = event,
            .is_adopted = flow.started < ctx.flow_log->since,
            .passed = flow.passed};
}

FlowEnd end_of_open(bool is_unanswered, Removal removal) noexcept {
    switch (removal) {
        case Removal::Expired:
            return is_unanswered ? FlowEnd::Unanswered : FlowEnd::Idle;
        case Removal::Reopened:
            return FlowEnd::Replaced;
        case Removal::Evicted:
            return FlowEnd::Evicted;
        case Removal::Reclaimed:
            return FlowEnd::Reclaimed;
        case Removal::Ordered:
            return FlowEnd::Ended;
    }
    return FlowEnd::Idle;
}

}  // namespace

std::string_view to_string(FlowEnd end) noexcept {
    return kEndNames[static_cast<size_t>(end)];
}

FlowEnd flow_end_of(const conn::Entry& connection, Removal removal) noexcept {
    switch (connection.protocol) {
        case Protocol::Tcp: {
            const conn::TcpState state = connection.tcp_state();
            if (state == conn::TcpState::TimeWait) {
                return FlowEnd::Closed;
            }
            if (state == conn::TcpState::Resetting) {
                return FlowEnd::Ended;
            }
            if (state == conn::TcpState::Closed || conn::is_behind_rst(state)) {
                return FlowEnd::Reset;
            }
            return end_of_open(state == conn::TcpState::SynSent || state == conn::TcpState::PickedUp,
                               removal);
        }
        case Protocol::Udp:
            return end_of_open(connection.datagram_state() == conn::DatagramState::OneWay, removal);
        case Protocol::Sctp: {
            const conn::SctpState state = connection.sctp_state();
            if (state == conn::SctpState::Closed) {
                return FlowEnd::Closed;
            }
            if (state == conn::SctpState::Aborting) {
                return FlowEnd::Ended;
            }
            return end_of_open(conn::is_opening(state), removal);
        }
    }
    return FlowEnd::Idle;
}

void record_begin(WorkerContext& ctx, ConnectionIndex index, lb::FlowRecords requested,
                  uint32_t bytes) noexcept {
    FlowLog& log = *ctx.flow_log;
    FlowLog::Flow& flow = log.flows[index.value];
    if (!log.selection.has(requested, ctx.connections.at(index).key(conn::Direction::Forward),
                           ctx.owner.mix)) {
        flow.started = {};
        return;
    }
    flow = {.started = ctx.now, .last = ctx.now, .passed = {FlowCount{1, bytes}}};
    log.push(record_of(ctx, index, FlowRecord::Event::Begin));
}

void record_end(WorkerContext& ctx, ConnectionIndex index, Removal removal) noexcept {
    FlowLog::Flow& flow = ctx.flow_log->flows[index.value];
    if (flow.started == TscTime{}) {
        return;
    }
    FlowRecord record = record_of(ctx, index, FlowRecord::Event::End);
    record.end = flow_end_of(ctx.connections.at(index), removal);
    flow.started = {};
    ctx.flow_log->push(record);
}

void select_adopted(WorkerContext& ctx, const config::Snapshot& snapshot) noexcept {
    const lb::ServiceTable& services = *snapshot.services;
    const TscRate rate = ctx.rate;
    for (uint32_t unit = 0; unit < ctx.connections.high_water(); ++unit) {
        if (!ctx.connections.is_live(unit)) {
            continue;
        }
        const conn::Entry& entry = ctx.connections.at({unit});
        const packet::FlowKey forward = entry.key(conn::Direction::Forward);
        const lb::FrontendRow* frontend =
            services.find(forward.destination, forward.destination_port, forward.protocol,
                          services.hash(forward.destination, forward.destination_port, forward.protocol));
        if (frontend == nullptr || frontend->service->id != entry.service ||
            !ctx.flow_log->selection.has(frontend->service->flow_records, forward, ctx.owner.mix)) {
            continue;
        }
        const CoarseTime now = ctx.clock.at(ctx.flow_log->since);
        const auto before = [&](CoarseTime time) {
            const uint64_t ticks =
                rate.milliseconds(ctx.clock.to_milliseconds(units_between(time, now))).value;
            const uint64_t since = ctx.flow_log->since.value;
            // Never 0, which means "no records", and always before `since`.
            return TscTime{since > ticks + 1 ? since - ticks - 1 : 1};
        };
        ctx.flow_log->flows[unit] = {
            .started = before(entry.opened_at), .last = before(entry.last_seen), .passed = {}};
    }
}

}  // namespace penstock::pipeline
