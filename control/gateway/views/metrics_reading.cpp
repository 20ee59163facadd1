// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/views/metrics_reading.hpp"

#include <rte_cycles.h>

#include <bit>
#include <map>

#include "control/gateway/program/version.hpp"
#include "control/gateway/views/stray_states.hpp"

namespace penstock::gateway {
namespace {

std::optional<metrics::VipReading> vip_reading(const VipReport& report) {
    if (report.mode == VipPresenceMode::Off) {
        return std::nullopt;
    }
    metrics::VipReading out;
    if (report.mode == VipPresenceMode::Routes || report.mode == VipPresenceMode::Arp) {
        out.routes = {{kServeMetric, 0}, {kStandByMetric, 0}, {kDrainMetric, 0}};
    }
    for (const VipView& vip : report.vips) {
        if (!vip.is_vip) {
            continue;
        }
        out.conflicts += vip.has_foreign_route ? 1 : 0;
        if (!vip.is_present) {
            ++(vip.is_of_others ? out.others : out.absent);
        } else if (vip.is_answered) {
            ++out.answered;
        } else if (vip.metric > 0) {
            ++out.routes[vip.metric];
        } else {
            ++out.addresses;
        }
    }
    return out;
}

// Of TCP only: there are none of other protocols.
std::optional<metrics::LatencyReading> latency_reading(
    Protocol protocol, const std::optional<worker::ConnectionLatencies>& totals) {
    if (!totals || protocol != Protocol::Tcp) {
        return std::nullopt;
    }
    return metrics::LatencyReading{.connect = {totals->connect.buckets, totals->connect.sum_s},
                                   .first_byte = {totals->first_byte.buckets, totals->first_byte.sum_s}};
}

// The first `backends_max` of them, in the order of service ports and endpoints, have series of their own.
void read_backends(const Compiled& compiled, const worker::Inspector& inspector, size_t backends_max,
                   metrics::Reading& out) {
    uint64_t without = 0;
    for (const auto& [key, programmed] : compiled.services) {
        std::map<SocketAddress, BackendId> backends;  // each one once, even if it is in several sets
        for (const lb::BackendSet& set : programmed.service->sets) {
            for (const lb::Backend& backend : set.usable) {
                backends.emplace(SocketAddress{backend.address, backend.port}, backend.id);
            }
        }
        for (const auto& [at, id] : backends) {
            if (out.backends.size() == backends_max) {
                ++without;
                continue;
            }
            const worker::BackendTotals totals = inspector.backend(id);
            out.backends.push_back({.key = key,
                                    .endpoint = at.to_string(),
                                    .new_flows = totals.new_flows,
                                    .connections = totals.connections,
                                    .open_connections = totals.open,
                                    .latency = latency_reading(key.protocol, inspector.latencies(id))});
        }
    }
    out.backends_without_series = without;
}

std::vector<std::pair<std::string, bool>> read_stray_targets(const config::Snapshot& snapshot) {
    std::vector<std::pair<std::string, bool>> out;
    for (const auto& [gateway, state] : stray_states(snapshot)) {
        out.emplace_back(gateway, state == pipeline::StrayState::Reached);
    }
    return out;
}

std::vector<metrics::ShareReading::Channel> read_channels(const ShareCopies& copies,
                                                          const GatewayShares& own) {
    std::vector<metrics::ShareReading::Channel> out;
    const auto now = std::chrono::steady_clock::now();
    for (const ShareCopies::Channel& channel : copies.channels(own)) {
        if (!channel.has_common_shares) {
            continue;
        }
        const CopyBook::Counts& counts = channel.counts;
        metrics::ShareReading::Channel& read = out.emplace_back();
        read.gateway = channel.gateway;
        read.state = to_string(channel.view.state);
        read.is_on = channel.view.state != ChannelState::Off;
        read.is_complete = channel.view.state == ChannelState::Complete;
        read.held = counts.held;
        if (channel.view.complete_at) {
            read.complete_age_s = std::chrono::duration<double>(now - *channel.view.complete_at).count();
        }
        read.received = counts.received;
        read.refused = {{"share", counts.foreign}, {"full", counts.full}, {"taken", counts.taken}};
        read.sent = channel.sent.records;
    }
    return out;
}

}  // namespace

metrics::Reading read_metrics(const Running& running, size_t backends_max) {
    metrics::Reading out;
    out.version = kVersion;
    out.control_connected = running.stream.control().connected;
    out.generation = running.workers.current().generation;
    const auto compiled = running.reconciler.read([&](const ReconcilerState& state) {
        out.applied_version = state.applied.number;
        if (state.origin != StateOrigin::None) {
            out.applied_s = std::chrono::duration<double>(state.applied_on.time_since_epoch()).count();
            out.last_good_in_force = state.origin == StateOrigin::LastGood;
        }
        return state.compiler.compiled();
    });
    const worker::Inspector inspector = running.workers.inspect();
    out.affinity_entries = inspector.affinity_entries();
    out.affinity_entries_max = inspector.affinity_entries_max();
    const uint32_t backend_ids = running.backend_ids();
    for (uint8_t w = 0; w < inspector.workers(); ++w) {
        metrics::WorkerReading& worker = out.workers.emplace_back();
        worker.connections_max = inspector.worker({w}).connections_max;
        worker.open_connections = inspector.open_connections({w}, backend_ids);
        const auto seconds = [&](stats::Counter ticks) {
            return static_cast<double>(inspector.counter({w}, ticks)) / static_cast<double>(rte_get_tsc_hz());
        };
        worker.busy_s = seconds(stats::Counter::BusyTicks);
        worker.asleep_s = seconds(stats::Counter::SleepTicks);
        for (size_t i = 0; i < stats::kCounters; ++i) {
            worker.counters[i] = inspector.counter({w}, static_cast<stats::Counter>(i));
        }
        for (size_t i = 0; i < kDropReasons; ++i) {
            worker.drops[i] = inspector.drops({w}, static_cast<DropReason>(i));
        }
    }
    for (const nat::SnatUse& use : inspector.snat_use()) {
        out.snat.push_back({.address = use.address.to_string(),
                            .protocol = use.protocol,
                            .ports = use.ports,
                            .in_use = use.in_use,
                            .busiest_endpoint = use.busiest_endpoint});
    }
    for (const auto& pool : running.pools.use()) {
        out.buffer_pools.push_back({pool.name, pool.buffers, pool.in_use});
    }
    const auto own = inspector.own_buffers();
    out.buffer_pools.push_back({own.name, own.buffers, own.in_use});
    const auto probes = running.caretaker.probe_counters();
    out.started_s = std::chrono::duration<double>(running.started_on.time_since_epoch()).count();
    out.drained = running.caretaker.drained();
    out.vips_withheld = !running.caretaker.vips_withheld().empty();
    out.vips = vip_reading(*running.caretaker.vips());
    out.is_well = running.caretaker.why_not_well().empty();
    for (const LoopHealth::Loop& loop : running.loops.health()->loops) {
        out.loops.push_back({loop.name, loop.is_stalled});
    }
    if (const auto saving = running.reconciler.saving()) {
        out.save_failing = saving->failing_since.has_value();
        out.save_failures = saving->failures;
    }
    const TablesStatus tables = running.tables.status();
    const adopt::Report& adopted = running.workers.adopted();
    out.tables = {.kept = !tables.file.empty(),
                  .adopted = adopted.all_adopted(),
                  .lost = {},
                  .adoption_s = static_cast<double>(adopted.microseconds) / 1e6,
                  .refused_files = tables.refused.size(),
                  .name_failures = tables.name_failures};
    for (size_t i = 0; i < adopt::kNotAdopted; ++i) {
        out.tables.lost.emplace_back(to_string(static_cast<adopt::NotAdopted>(i)), adopted.lost[i]);
    }
    const Captures::Counts captures = running.captures.counts();
    out.captures = {captures.is_running, captures.begun, captures.records, captures.lost};
    if (const auto upgrade = running.upgrades.last()) {
        out.upgrades = {.done = upgrade->done(),
                        .failed = upgrade->failed(),
                        .pause_s = static_cast<double>(upgrade->pause_us()) / 1e6,
                        .is_running = upgrade->state() == v1::Upgrade::STATE_RUNNING};
    }
    out.probes = {.sent = probes.sent,
                  .succeeded = probes.succeeded,
                  .failed = probes.failed,
                  .turned_up = probes.turned_up,
                  .turned_down = probes.turned_down,
                  .targets = probes.targets,
                  .down = probes.down,
                  .failing_open = 0};
    if (running.flow_records != nullptr) {
        const worker::WorkerSet::FlowRecordCounts queued = running.workers.flow_record_counts();
        const flow_records::ExporterCounts counts = running.flow_records->counts();
        out.flow_records = {.queued = queued.written,
                            .logged = counts.logged,
                            .sent = counts.sent,
                            .lost = {{"queue", queued.lost}}};
        for (size_t i = 0; i < flow_records::kLosses; ++i) {
            out.flow_records->lost.emplace_back(to_string(static_cast<flow_records::Loss>(i)),
                                                counts.lost[i]);
        }
    }
    if (running.shares != nullptr) {
        const auto own = running.shares->shares();
        out.shares = {.plan_version = own->plan().version,
                      .has_fault = !running.shares->fault().empty(),
                      .shares = {},
                      .awaiting_fail_back = static_cast<uint64_t>(std::popcount(running.copies->held())),
                      .channels = read_channels(*running.copies, *own),
                      .stray_targets = read_stray_targets(running.workers.current()),
                      .copies_max = running.copies->capacity(),
                      .copies_taken = running.copies->taken()};
        for (size_t number = 0; number < own->plan().shares.size(); ++number) {
            const shares::Role role = own->part_in(static_cast<uint8_t>(number)).role;
            if (role != shares::Role::None) {
                out.shares->shares.push_back({number, to_string(role), {}});
            }
        }
        if (running.link_duty != nullptr) {
            const uint64_t held = running.link_duty->held();
            for (metrics::ShareReading::Share& share : out.shares->shares) {
                share.holds = (held >> share.number & 1) != 0;
            }
        }
    }
    if (running.bfd != nullptr) {
        const bfd::FrrLink::View view = running.bfd->view();
        out.bfd = {.connected = view.fault.empty(), .sessions = {}};
        for (const bfd::FrrLink::Session& session : view.sessions) {
            out.bfd->sessions.push_back({.peer = session.peer.to_string(),
                                         .twin = session.twin,
                                         .is_up = session.status.state == bfd::State::Up,
                                         .times_down = session.times_down,
                                         .withheld = session.withheld});
        }
    }
    if (running.tls != nullptr) {
        const auto seconds = [](tls::Material::Time time) {
            return std::chrono::duration<double>(time.time_since_epoch()).count();
        };
        const auto material = running.tls->current();
        out.tls = {.certificate_starts_s = seconds(material->valid_from),
                   .certificate_expires_s = seconds(material->expires),
                   .authority_expires_s = seconds(material->authority_expires),
                   .broken = !running.tls->error().empty()};
    }
    if (running.tcp != nullptr) {
        const rpc::ConnectionCounts counts = running.tcp->counts();
        out.connections = {.open = counts.open,
                           .max = rpc::kConnectionsMax,
                           .refused_per_source = counts.refused_per_source,
                           .refused_all = counts.refused_all};
    }
    for (const auto& [key, programmed] : compiled->services) {
        out.probes.failing_open += programmed.fails_open ? 1 : 0;
        const auto totals = inspector.service(programmed.service->id);
        out.services.push_back(
            {.key = key,
             .new_flows = totals.new_flows,
             .forward_packets = totals.forward_packets,
             .forward_bytes = totals.forward_bytes,
             .reverse_packets = totals.reverse_packets,
             .reverse_bytes = totals.reverse_bytes,
             .rejected = totals.rejected,
             .dropped = totals.dropped,
             .connections = totals.connections,
             .backends = programmed.service->sets.front().usable.size(),
             .latency = latency_reading(key.protocol, inspector.latencies(programmed.service->id))});
    }
    if (backends_max > 0) {
        read_backends(*compiled, inspector, backends_max, out);
    }
    for (const auto& port : running.ports) {
        const auto counters = port->counters();
        const auto placed = inspector.port(port->facts().id);
        const auto twin = running.twin_io.counters(port->facts().id);
        out.ports.push_back({.twin = port->options().twin_name,
                             .rx_packets = counters.rx_packets,
                             .rx_bytes = counters.rx_bytes,
                             .tx_packets = counters.tx_packets,
                             .tx_bytes = counters.tx_bytes,
                             .rx_missed = counters.rx_missed,
                             .handed_off = placed.handed_off,
                             .handoff_lost = placed.handoff_lost,
                             .replies_misplaced = placed.replies_misplaced,
                             .punted = twin.punted,
                             .from_host = twin.from_host,
                             .from_host_dropped = twin.from_host_dropped,
                             .from_host_waits = twin.no_buffer,
                             .twin_dropped = twin.dropped_by_linux,
                             .link_up = port->link_up()});
    }
    return out;
}

}  // namespace penstock::gateway
