// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/views/status_view.hpp"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "control/gateway/views/affinity_view.hpp"
#include "control/gateway/views/certificate_view.hpp"
#include "control/gateway/views/service_view.hpp"
#include "control/log/log.hpp"
#include "control/rpc/convert.hpp"
#include "control/rpc/state_message.hpp"

namespace penstock::gateway {
namespace {

using stats::Counter;

uint64_t ms_since(std::chrono::steady_clock::time_point then) {
    return static_cast<uint64_t>(
        std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - then)
            .count());
}

// "info", or "control=info rpc=debug" if they differ.
std::string log_level_text() {
    const auto levels = log::levels();
    const auto same = std::ranges::all_of(
        levels, [&](const auto& entry) { return entry.second == levels.begin()->second; });
    if (same) {
        return levels.begin()->second;
    }
    std::string text;
    for (const auto& [logger, level] : levels) {
        text += (text.empty() ? "" : " ") + logger + "=" + level;
    }
    return text;
}

v1::Status::ConfigurationOrigin to_proto(StateOrigin origin) {
    switch (origin) {
        case StateOrigin::None:
            return v1::Status::CONFIGURATION_ORIGIN_NONE;
        case StateOrigin::Stream:
            return v1::Status::CONFIGURATION_ORIGIN_STREAM;
        case StateOrigin::LastGood:
            return v1::Status::CONFIGURATION_ORIGIN_LAST_GOOD;
    }
    return v1::Status::CONFIGURATION_ORIGIN_UNSPECIFIED;
}

v1::FlowRule::State to_proto(FlowView::State state) {
    switch (state) {
        case FlowView::State::Installed:
            return v1::FlowRule::STATE_INSTALLED;
        case FlowView::State::Refused:
            return v1::FlowRule::STATE_REFUSED;
        case FlowView::State::NotUsed:
            return v1::FlowRule::STATE_NOT_USED;
    }
    return v1::FlowRule::STATE_UNSPECIFIED;
}

}  // namespace

std::string StatusView::twin_of(NicPortId port) const {
    return port.value < running_.ports.size() ? running_.ports[port.value]->options().twin_name
                                              : std::string();
}

v1::Status StatusView::status() const {
    v1::Status out;
    *out.mutable_identity() = running_.stream.identity();
    running_.reconciler.read([&](const ReconcilerState& state) {
        *out.mutable_applied() = rpc::to_proto(state.applied);
        out.set_origin(to_proto(state.origin));
        if (state.origin != StateOrigin::None) {
            out.set_applied_age_ms(ms_since(state.applied_at));
        }
        out.set_services(static_cast<uint32_t>(state.compiler.compiled()->services.size()));
        out.set_backends(state.compiler.ids().backends.live());
    });
    const rpc::ControlPlane control = running_.stream.control();
    out.set_control_connected(control.connected);
    out.set_control_source(control.source);
    out.set_control_waiting(control.waiting);
    out.set_uptime_ms(ms_since(running_.started_at));
    out.set_generation(running_.workers.current().generation);
    const worker::Inspector inspector = running_.workers.inspect();
    out.set_workers(inspector.workers());
    out.set_ports(static_cast<uint32_t>(running_.ports.size()));
    for (uint8_t w = 0; w < inspector.workers(); ++w) {
        const auto view = inspector.worker({w});
        out.set_connections(out.connections() + view.connections);
        out.set_connections_max(out.connections_max() + view.connections_max);
    }
    out.set_memory(running_.memory);
    out.set_log_level(log_level_text());
    out.set_open_connections(running_.open_connections());
    out.set_drained(running_.caretaker.drained());
    out.set_vips_withheld(running_.caretaker.vips_withheld());
    add_drain(out);
    for (const std::string& reason : running_.caretaker.why_not_well()) {
        out.add_not_well(reason);
    }
    for (const std::string& reason : running_.caretaker.why_not_live()) {
        out.add_not_live(reason);
    }
    if (const auto saving = running_.reconciler.saving(); saving && saving->failing_since) {
        out.set_save_error(saving->error);
        out.set_save_failing_ms(ms_since(*saving->failing_since));
    }
    add_tables(*out.mutable_tables());
    if (auto upgrade = running_.upgrades.last()) {
        *out.mutable_upgrade() = std::move(*upgrade);
    }
    if (running_.flow_records != nullptr) {
        add_flow_records(*out.mutable_flow_records());
    }
    if (running_.bfd != nullptr) {
        *out.mutable_bfd() = bfd_summary();
    }
    if (running_.shares != nullptr) {
        *out.mutable_shares() = shares_summary();
    }
    if (running_.tls != nullptr) {
        *out.mutable_certificate() = certificate_message(*running_.tls->current(), running_.tls->error(),
                                                         std::chrono::system_clock::now());
    }
    return out;
}

void StatusView::add_flow_records(v1::FlowRecords& out) const {
    const worker::WorkerSet::FlowRecordCounts queued = running_.workers.flow_record_counts();
    const flow_records::ExporterCounts counts = running_.flow_records->counts();
    out.set_queued(queued.written);
    out.set_logged(counts.logged);
    out.set_sent(counts.sent);
    const auto add_lost = [&out](std::string_view reason, uint64_t records) {
        if (records > 0) {
            v1::FlowRecords::Lost& lost = *out.add_lost();
            lost.set_reason(std::string(reason));
            lost.set_records(records);
        }
    };
    add_lost("queue", queued.lost);
    for (size_t i = 0; i < flow_records::kLosses; ++i) {
        add_lost(to_string(static_cast<flow_records::Loss>(i)), counts.lost[i]);
    }
    out.set_fault(running_.flow_records->fault());
}

void StatusView::add_tables(v1::Tables& out) const {
    const TablesStatus tables = running_.tables.status();
    out.set_file(tables.file);
    out.set_why_not(tables.why);
    out.set_bytes(tables.bytes);
    out.set_in_hugepages(tables.in_hugepages);
    out.set_remark(tables.remark);
    out.set_nothing_adopted(tables.nothing_taken);
    out.set_name_error(tables.name_error);
    for (const TableFolder::Refused& refused : tables.refused) {
        out.add_refused_files(refused.file + " " + refused.why);
    }
    const adopt::Report& report = running_.workers.adopted();
    out.set_adopted(report.all_adopted());
    if (report.converted_from) {
        out.set_converted_from(*report.converted_from);
    }
    for (size_t i = 0; i < adopt::kNotAdopted; ++i) {
        if (report.lost[i] > 0) {
            v1::Tables::Count& lost = *out.add_lost();
            lost.set_reason(std::string(to_string(static_cast<adopt::NotAdopted>(i))));
            lost.set_count(report.lost[i]);
        }
    }
    out.set_affinity_adopted(report.affinity_adopted);
    out.set_affinity_lost(report.affinity_lost);
    out.set_adoption_us(report.microseconds);
}

v1::ListPortsResponse StatusView::ports() const {
    const auto mirror = running_.reconciler.read([](const ReconcilerState& state) { return state.mirror; });
    v1::ListPortsResponse out;
    for (const auto& port : running_.ports) {
        const auto& facts = port->facts();
        v1::Port& message = *out.add_ports();
        message.set_id(facts.id.value);
        message.set_name(facts.name);
        message.set_driver(facts.driver);
        message.set_mac(facts.mac.to_string());
        message.set_twin(port->options().twin_name);
        for (const auto& local : mirror->addresses) {
            if (local.port == facts.id) {
                message.add_addresses(local.address.to_string() + "/" + std::to_string(local.prefix_length));
            }
        }
        message.set_mtu(facts.mtu);
        message.set_link_up(port->link_up());
        message.set_state(port->is_removed() ? "removed" : "running");
        message.set_rx_queues(facts.rx_queues);
        message.set_tx_queues(facts.tx_queues);
        for (const auto& offload : facts.offloads) {
            message.add_offloads(offload);
        }
        message.set_steering(drivers::to_string(facts.steering.steering));
        message.set_steering_reason(facts.steering.reason);
        for (const std::string& member : port->members()) {
            message.add_members(member);
        }
        for (const auto& setting : facts.settings) {
            v1::PortSetting& said = *message.add_settings();
            said.set_name(setting.name);
            said.set_asked(setting.asked);
            said.set_granted(setting.granted);
            said.set_reason(setting.reason);
        }
        const auto counters = port->counters();
        message.set_rx_packets(counters.rx_packets);
        message.set_rx_bytes(counters.rx_bytes);
        message.set_tx_packets(counters.tx_packets);
        message.set_tx_bytes(counters.tx_bytes);
        message.set_rx_missed(counters.rx_missed);
        const auto twin = running_.twin_io.counters(facts.id);
        message.set_punted(twin.punted);
        message.set_from_host(twin.from_host);
        message.set_from_host_dropped(twin.from_host_dropped);
        message.set_from_host_waits(twin.no_buffer);
        message.set_twin_dropped(twin.dropped_by_linux);
        const auto placed = running_.workers.inspect().port(facts.id);
        message.set_handed_off(placed.handed_off);
        message.set_handoff_lost(placed.handoff_lost);
        message.set_replies_misplaced(placed.replies_misplaced);
    }
    return out;
}

v1::ListWorkersResponse StatusView::workers() const {
    const worker::Inspector inspector = running_.workers.inspect();
    const uint32_t backend_ids = running_.backend_ids();
    v1::ListWorkersResponse out;
    for (uint8_t w = 0; w < inspector.workers(); ++w) {
        const WorkerId id{w};
        const auto view = inspector.worker(id);
        v1::Worker& message = *out.add_workers();
        message.set_id(w);
        message.set_core(view.cpu);
        message.set_connections(view.connections);
        message.set_open_connections(inspector.open_connections(id, backend_ids));
        message.set_connections_max(view.connections_max);
        message.set_handed_off(inspector.counter(id, Counter::HandedOff));
        message.set_handed_in(inspector.counter(id, Counter::HandedIn));
        message.set_packets(inspector.counter(id, Counter::RxPackets) + message.handed_in());
        message.set_polls(inspector.counter(id, Counter::Polls));
        message.set_empty_polls(inspector.counter(id, Counter::EmptyPolls));
        message.set_busy_ratio(view.busy_ratio);
        message.set_generation(view.generation);
        message.set_idle(view.idle);
        message.set_sleeps(inspector.counter(id, Counter::Sleeps));
        message.set_sleep_ratio(view.sleep_ratio);
    }
    return out;
}

v1::ListServicesResponse StatusView::services(std::string_view namespace_name, std::string_view name) const {
    return list_services(running_, namespace_name, name);
}

v1::ListBackendsResponse StatusView::backends(std::string_view namespace_name,
                                              std::string_view service) const {
    return list_backends(running_, namespace_name, service);
}

void StatusView::affinity(const rpc::AffinityFilter& filter,
                          const std::function<bool(const v1::AffinityEntry&)>& visit) const {
    running_.workers.inspect().for_each_affinity(
        [&](const worker::AffinityView& view) { return !matches(filter, view) || visit(to_proto(view)); });
}

void StatusView::connections(const rpc::ConnectionFilter& filter,
                             const std::function<bool(const v1::Connection&)>& visit) const {
    // Ids outlive their service ports, so that a draining flow still has a name.
    const auto names = running_.reconciler.read([](const ReconcilerState& state) {
        std::vector<model::ServiceKey> keys;
        keys.reserve(state.compiler.ids().services.size());
        for (uint32_t number = 0; number < state.compiler.ids().services.size(); ++number) {
            keys.push_back(*state.compiler.ids().services.key_of({number}));
        }
        return keys;
    });
    running_.workers.inspect().for_each_connection([&](const worker::ConnectionView& view) {
        const auto& forward = view.forward;
        const auto& reverse = view.reverse;
        if (!filter.client.matches(forward.source, forward.source_port) ||
            !filter.frontend.matches(forward.destination, forward.destination_port) ||
            !filter.backend.matches(reverse.source, reverse.source_port) ||
            (filter.protocol && *filter.protocol != forward.protocol)) {
            return true;
        }
        v1::Connection message;
        message.set_protocol(rpc::to_proto(forward.protocol));
        *message.mutable_client() = rpc::to_proto(SocketAddress{forward.source, forward.source_port});
        *message.mutable_frontend() =
            rpc::to_proto(SocketAddress{forward.destination, forward.destination_port});
        *message.mutable_backend() = rpc::to_proto(SocketAddress{reverse.source, reverse.source_port});
        if (!view.source_kept) {
            *message.mutable_snat() =
                rpc::to_proto(SocketAddress{reverse.destination, reverse.destination_port});
        }
        if (view.service.value < names.size()) {
            *message.mutable_service() = rpc::to_proto(names[view.service.value]);
        }
        message.set_worker(view.worker.value);
        message.set_state(view.state);
        message.set_age_ms(view.age_ms);
        message.set_idle_ms(view.idle_ms);
        message.set_expires_ms(view.expires_ms);
        return visit(message);
    });
}

v1::Counters StatusView::counters() const {
    const worker::Inspector inspector = running_.workers.inspect();
    v1::Counters out;
    for (size_t i = 0; i < stats::kCounters; ++i) {
        v1::Counter& message = *out.add_counters();
        message.set_name(std::string(stats::kCounterTexts[i].name));
        message.set_meaning(std::string(stats::kCounterTexts[i].meaning));
        for (uint8_t w = 0; w < inspector.workers(); ++w) {
            const uint64_t value = inspector.counter({w}, static_cast<Counter>(i));
            message.add_per_worker(value);
            message.set_value(message.value() + value);
        }
    }
    for (size_t i = 0; i < kDropReasons; ++i) {
        v1::DropCounter& message = *out.add_drops();
        message.set_reason(std::string(kDropReasonTexts[i].counter));
        message.set_meaning(std::string(kDropReasonTexts[i].meaning));
        for (uint8_t w = 0; w < inspector.workers(); ++w) {
            const uint64_t packets = inspector.drops({w}, static_cast<DropReason>(i));
            message.add_per_worker(packets);
            message.set_packets(message.packets() + packets);
        }
    }
    return out;
}

v1::ListRoutesResponse StatusView::routes() const {
    const auto mirror = running_.reconciler.read([](const ReconcilerState& state) { return state.mirror; });
    v1::ListRoutesResponse out;
    for (const auto& route : mirror->routes) {
        if (!route.egress.is_set()) {
            continue;  // not through the gateway's ports
        }
        v1::Route& message = *out.add_routes();
        message.set_destination(route.destination.to_string());
        if (route.gateway) {
            message.set_gateway(route.gateway->to_string());
        }
        message.set_twin(twin_of(route.egress));
        message.set_port(route.egress.value);
        message.set_metric(route.metric);
    }
    return out;
}

v1::ListNeighboursResponse StatusView::neighbours() const {
    const auto mirror = running_.reconciler.read([](const ReconcilerState& state) { return state.mirror; });
    const worker::Inspector inspector = running_.workers.inspect();
    v1::ListNeighboursResponse out;
    for (const auto& neighbour : mirror->neighbours) {
        v1::Neighbour& message = *out.add_neighbours();
        message.set_address(neighbour.address.to_string());
        if (!neighbour.mac.is_zero()) {
            message.set_mac(neighbour.mac.to_string());
        }
        message.set_state(route::to_string(neighbour.state));
        message.set_twin(twin_of(neighbour.port));
        message.set_port(neighbour.port.value);
        const auto idle = inspector.neighbour_idle_ms(neighbour.id);
        message.set_used_ms_ago(idle ? static_cast<int64_t>(*idle) : -1);
    }
    return out;
}

v1::ListFlowsResponse StatusView::flows() const {
    v1::ListFlowsResponse out;
    for (const FlowView& view : running_.flows.list()) {
        v1::FlowRule& message = *out.add_rules();
        message.set_port(view.port.value);
        message.set_kind(drivers::to_string(view.kind));
        message.set_match(view.match);
        message.set_action(view.action);
        message.set_state(to_proto(view.state));
        message.set_reason(view.reason);
        message.set_counted(view.hits.has_value());
        if (view.hits) {
            message.set_packets(view.hits->packets);
            message.set_bytes(view.hits->bytes);
        }
    }
    return out;
}

}  // namespace penstock::gateway
