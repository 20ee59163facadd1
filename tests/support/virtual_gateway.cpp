// SPDX-License-Identifier: Apache-2.0
#include "tests/support/virtual_gateway.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <memory>

#include "dataplane/adopt/adoption.hpp"
#include "dataplane/adopt/affinity.hpp"
#include "dataplane/base/check.hpp"
#include "dataplane/base/socket_address.hpp"
#include "dataplane/packet/fragment_ipv4.hpp"
#include "dataplane/packet/fragment_ipv6.hpp"
#include "dataplane/pipeline/aging.hpp"
#include "dataplane/pipeline/counted_stages.hpp"
#include "dataplane/pipeline/flow_orders.hpp"
#include "dataplane/pipeline/flow_records.hpp"
#include "tests/support/cut_frames.hpp"

namespace penstock::test {
namespace {

constexpr uint16_t kHeadroom = 128, kTailroom = 128;            // of an mbuf
constexpr IpFamily kFamilies[] = {IpFamily::V4, IpFamily::V6};  // the order of a Service's sets

std::array<std::pair<IpAddr, NicPortId>, 4> own_addresses() {
    return {
        {{kUpAddress, kUp}, {kClusterAddress, kCluster}, {kUpAddress6, kUp}, {kClusterAddress6, kCluster}}};
}

}  // namespace

VirtualGateway::VirtualGateway(const Options& options)
    : options_(options),
      secrets_(options.secrets_from.value_or(seed())),
      owner_key_(options.owner_key.value_or(new_key())),
      affinity_key_(new_key()),
      affinity_memory_(lb::AffinityTable::memory_needed(options.affinity_entries)) {
    std::vector<nat::PortReplyHash> hashes;
    if (options.up_hash) {
        hashes.push_back({kUp, &*options.up_hash});
    }
    if (options.cluster_hash) {
        hashes.push_back({kCluster, &*options.cluster_hash});
    }
    auto rules = nat::ReplyRules::create(hashes, options.workers);
    PENSTOCK_CHECK(rules);
    reply_rules_ = std::move(*rules);
    start_affinity();
    for (uint32_t w = 0; w < options.workers; ++w) {
        workers_.push_back(std::make_unique<WorkerState>(
            conn::Table::memory_needed(options.connections),
            nat::PortProposer::memory_needed(options.connections, options.snat_ports, options.workers,
                                             &reply_rules_),
            options));
        workers_[w]->table_key = new_key();
        workers_[w]->ports_key = new_key();
        workers_[w]->pending_key = new_key();
        workers_[w]->fragments_key = new_key();
        backend_rows_[w] = workers_[w]->backends.data();
        start_worker(w);
    }
    auto snat = std::make_shared<nat::SnatConfig>();
    for (const auto& [address, port] : own_addresses()) {
        snat->addresses.push_back(
            {address, options.snat_any_egress ? NicPortId() : port, options.snat_shared_with_host});
    }
    for (const nat::SnatAddress& named : options.more_snat) {
        snat->addresses.push_back(named);
    }
    snat->ports = options.snat_ports;
    snapshot_.snat = snat;
    rebuild_routes();
    remember();
}

HashKey VirtualGateway::new_key() {
    const uint64_t first = secrets_.next();
    return HashKey{first, secrets_.next()};
}

void VirtualGateway::start_affinity() {
    auto affinity =
        lb::AffinityTable::create(affinity_memory_.span(), options_.affinity_entries, affinity_key_);
    PENSTOCK_CHECK(affinity);
    affinity_ = *affinity;
}

void VirtualGateway::start_worker(uint32_t index) {
    WorkerState& state = *workers_[index];
    const WorkerId self{static_cast<uint8_t>(index)};
    auto table = conn::Table::create(state.table.span(), options_.connections, state.table_key);
    auto ports = nat::PortProposer::create(state.ports.span(), options_.connections, options_.snat_ports,
                                           self, options_.workers, state.ports_key, &reply_rules_);
    PENSTOCK_CHECK(table && ports);
    if (!state.schedulers_at_start) {
        const std::span rows = lb::BackendRows(backend_rows_).first(options_.workers);
        state.schedulers_at_start.emplace(state.cursors, new_key().k0, rows);
        state.cursors_at_start.assign(
            state.cursors.begin(),
            state.cursors.begin() + static_cast<ptrdiff_t>(state.services.size() * lb::kBackendSetsMax));
    }
    if (options_.flow_records) {
        state.flows.assign(state.table.span().size() / sizeof(conn::Entry), {});
        state.flow_queue = std::make_unique<pipeline::FlowRecordQueue>();
        state.flow_log.reset(new pipeline::FlowLog{.flows = state.flows,
                                                   .queue = state.flow_queue.get(),
                                                   .selection = *options_.flow_records,
                                                   .since = now_});
    }
    if (options_.latencies) {
        state.latency_waits.assign(state.table.span().size() / sizeof(conn::Entry), {});
        state.service_latencies = std::vector<stats::LatencyCounters>(options_.services);
        state.backend_latencies = std::vector<stats::LatencyCounters>(options_.backends);
        state.latency.reset(new pipeline::LatencyMeter{.waits = state.latency_waits,
                                                       .bounds = stats::latency_bounds(rate_),
                                                       .services = state.service_latencies,
                                                       .backends = state.backend_latencies});
    }
    // Constructed in place of the previous one: allocating half a megabyte would cost more than all the
    // writes to it.
    static_assert(alignof(pipeline::WorkerContext) > __STDCPP_DEFAULT_NEW_ALIGNMENT__);
    void* place = state.context.release();
    if (place == nullptr) {
        place = ::operator new(sizeof(pipeline::WorkerContext),
                               std::align_val_t{alignof(pipeline::WorkerContext)});
    } else {
        std::destroy_at(static_cast<pipeline::WorkerContext*>(place));
    }
    state.context.reset(::new (place) pipeline::WorkerContext{
        .self = self,
        .workers = options_.workers,
        .rate = rate_,
        .owner = {.workers = options_.workers,
                  .secret = owner_key_,
                  .rules = reply_rules_.empty() ? nullptr : &reply_rules_},
        .connections = std::move(*table),
        .by_backend = conn::BackendIndex(state.backend_links, state.backend_heads),
        .aging = conn::Aging(conn::Limits(conn::Timeouts{}, rate_)),
        .snat_ports = std::move(*ports),
        .schedulers = *state.schedulers_at_start,
        .pending = route::PendingPackets<rte_mbuf*>(rate_, state.pending_key),
        .fragments = pipeline::FragmentTable(rate_, state.fragments_key),
        .neighbour_use = route::NeighbourUse(state.neighbour_use),
        .rejects = pipeline::RejectLimiter(options_.rejects_per_second, options_.rejects_burst, rate_),
        .echoes = pipeline::RejectLimiter(options_.rejects_per_second, options_.rejects_burst, rate_),
        .too_big_answers = pipeline::PrefixLimiter(options_.errors_per_second, options_.errors_burst, rate_),
        .expiry_answers = pipeline::PrefixLimiter(options_.errors_per_second, options_.errors_burst, rate_),
        .affinity = affinity_,
        .counters = {&state.worker_counters, state.services, state.backends},
        .resolve = &state.resolve,
        .flow_log = state.flow_log.get(),
        .latency = state.latency.get(),
    });
    state.context->ports[kUp.value] = {kUpMac, {options_.flow_stays_on_queue, options_.snat_blocks_on_queue}};
    state.context->ports[kCluster.value] = {kClusterMac,
                                            {options_.flow_stays_on_queue, options_.snat_blocks_on_queue}};
}

pipeline::WorkerContext& VirtualGateway::begin_round(WorkerState& state) {
    state.is_new = false;
    state.context->begin_round(&snapshot_, now_);
    return *state.context;
}

void VirtualGateway::remember() {
    remembered_ = {now_, snapshot_};
}

void VirtualGateway::forget() {
    now_ = remembered_.now;
    if (snapshot_.generation != remembered_.snapshot.generation) {
        snapshot_ = remembered_.snapshot;
    }
    own_segments_.clear();
    waiting_.clear();
    released_.clear();
    start_affinity();
    for (uint32_t w = 0; w < options_.workers; ++w) {
        WorkerState& state = *workers_[w];
        if (state.is_new) {
            continue;
        }
        std::ranges::copy(state.cursors_at_start, state.cursors.begin());
        std::ranges::fill(state.backend_links, conn::BackendLink{});
        std::ranges::fill(state.backend_heads, 0U);
        std::destroy_at(&state.worker_counters);
        std::construct_at(&state.worker_counters);
        std::destroy(state.services.begin(), state.services.end());
        std::uninitialized_value_construct(state.services.begin(), state.services.end());
        std::destroy(state.backends.begin(), state.backends.end());
        std::uninitialized_value_construct(state.backends.begin(), state.backends.end());
        std::destroy_at(&state.resolve);
        std::construct_at(&state.resolve);
        state.burst = {};
        start_worker(w);
        state.is_new = true;
    }
}

adopt::FormerTables VirtualGateway::left_to(const VirtualGateway& heir) const {
    adopt::FormerTables left;
    for (const auto& worker : workers_) {
        left.connections.emplace_back(worker->table.span());
    }
    std::vector<ServiceId>& names = left.services.emplace(service_ids_.size());
    for (const auto& [name, id] : service_ids_) {
        for (const auto& [heirs_name, heirs_id] : heir.service_ids_) {
            if (name == heirs_name) {
                names[id.value] = heirs_id;
            }
        }
    }
    left.affinity = affinity_memory_.span();
    std::vector<const lb::Service*> seen;
    snapshot_.services->for_each_row([&](const lb::FrontendRow& row) {
        const lb::Service& service = *row.service;
        if (!service.has_affinity() || std::ranges::find(seen, &service) != seen.end()) {
            return;
        }
        seen.push_back(&service);
        adopt::FormerAffinity& affinity = left.affinity_services.emplace_back();
        affinity.owner = service.affinity_owner;
        affinity.epoch = service.affinity_epoch;
        affinity.current = names[service.id.value];
        for (const lb::BackendSet& set : service.sets) {
            for (const lb::Backend& backend : set.usable) {
                affinity.endpoints.push_back({backend.endpoint, backend.stay, backend.address, backend.port});
            }
        }
    });
    return left;
}

adopt::Report VirtualGateway::adopt(const adopt::FormerTables& former, const VirtualGateway& earlier) {
    now_ = earlier.now_;
    std::vector<pipeline::WorkerContext*> contexts;
    for (const auto& worker : workers_) {
        worker->is_new = false;
        contexts.push_back(worker->context.get());
    }
    adopt::Adoption adoption(former, snapshot_, contexts, now_);
    for (uint32_t w = 0; w < workers_.size(); ++w) {
        adoption.adopt({static_cast<uint8_t>(w)});
        if (contexts[w]->flow_log != nullptr) {
            contexts[w]->flow_log->since = now_;
            pipeline::select_adopted(*contexts[w], snapshot_);
        }
    }
    adopt::Report report = adoption.finish(moved_);
    const adopt::AffinityAdoption entries = adopt::adopt_affinity(former, snapshot_, affinity_, rate_, now_);
    report.affinity_adopted = entries.adopted;
    report.affinity_lost = entries.lost;
    return report;
}

ServiceId VirtualGateway::service_id(const TestService& service) {
    const std::string key = service.name + "/" + to_string(service.protocol);
    const auto known = std::find_if(service_ids_.begin(), service_ids_.end(),
                                    [&](const auto& entry) { return entry.first == key; });
    if (known != service_ids_.end()) {
        return known->second;
    }
    PENSTOCK_CHECK(service_ids_.size() < options_.services);
    service_ids_.emplace_back(key, ServiceId{static_cast<uint32_t>(service_ids_.size())});
    return service_ids_.back().second;
}

BackendId VirtualGateway::backend_id(const TestService& service, const IpAddr& address) {
    const std::string key = service.name + "/" + to_string(service.protocol) + "/" + address.to_string() +
                            " " + std::to_string(service.backend_port);
    const auto known = std::find_if(backend_ids_.begin(), backend_ids_.end(),
                                    [&](const auto& entry) { return entry.first == key; });
    if (known != backend_ids_.end()) {
        return known->second;
    }
    PENSTOCK_CHECK(backend_ids_.size() < options_.backends);
    backend_ids_.emplace_back(key, BackendId{static_cast<uint32_t>(backend_ids_.size())});
    return backend_ids_.back().second;
}

uint16_t VirtualGateway::stay_of(Stay& stay) const {
    stay.number = static_cast<uint16_t>(stay.number + (stay.seen_in + 1 < services_generation_ ? 1 : 0));
    stay.seen_in = services_generation_;
    return stay.number;
}

lb::BackendSet VirtualGateway::backend_set(const TestService& service, const std::vector<uint8_t>& hosts,
                                           IpFamily family, lb::SourceMode source) {
    lb::BackendSet set;
    set.source = source;
    set.when_empty = service.when_empty;
    for (const uint8_t host : hosts) {
        const IpAddr address = backend_address(host, family);
        const BackendId id = backend_id(service, address);
        lb::Backend& backend = set.usable.emplace_back(
            lb::Backend{id, address, service.backend_port, 1, stay_of(stays_[id.value])});
        if (service.affinity_group != 0) {
            const auto next = EndpointId{static_cast<uint32_t>(numbered_.size())};
            Numbered& numbered =
                numbered_.try_emplace({service.affinity_group, address}, Numbered{next, {}}).first->second;
            backend.endpoint = numbered.number;
            backend.stay = stay_of(numbered.stay);
        }
    }
    if (service.affinity_timeout_s != 0) {
        set.index_for_affinity(service.affinity_group == 0 ? lb::AffinityScope::Port
                                                           : lb::AffinityScope::Service);
    }
    lb::prepare(set, service.scheduler);
    return set;
}

void VirtualGateway::publish(const std::vector<TestService>& services) {
    std::vector<std::shared_ptr<const lb::Service>> compiled;
    std::vector<lb::Frontend> frontends;
    ++services_generation_;
    for (const TestService& service : services) {
        auto row = std::make_shared<lb::Service>();
        row->id = service_id(service);
        row->namespace_name = "default";
        row->name = service.name;
        row->protocol = service.protocol;
        row->scheduler = service.scheduler;
        row->affinity_timeout_s = service.affinity_timeout_s;
        row->flow_records = service.flow_records;
        if (row->has_affinity()) {
            row->affinity_epoch = service.affinity_epoch;
            row->affinity_owner = service.affinity_group == 0
                                      ? lb::affinity_owner_of(row->id)
                                      : lb::affinity_owner_of_all_ports(service.affinity_group);
        }
        const auto endpoints_for = [&](IpFamily frontend) { return service.endpoints_of.value_or(frontend); };
        for (const std::vector<uint8_t>* hosts : {&service.backends, &service.local_backends}) {
            for (const IpFamily family : kFamilies) {
                row->sets.push_back(backend_set(service, *hosts, endpoints_for(family), service.source));
            }
        }
        for (const IpFamily family : kFamilies) {
            if (service.inside) {
                row->sets.push_back(backend_set(service, service.inside->backends, endpoints_for(family),
                                                service.inside->source));
            }
        }
        std::map<SocketAddress, BackendId> with_flows;
        for (const lb::BackendSet& set : row->sets) {
            for (const lb::Backend& backend : set.usable) {
                with_flows.emplace(SocketAddress{backend.address, backend.port}, backend.id);
            }
        }
        for (const uint8_t host : service.kept_backends) {
            for (const IpFamily family : kFamilies) {
                const IpAddr address = backend_address(host, endpoints_for(family));
                with_flows.emplace(SocketAddress{address, service.backend_port},
                                   backend_id(service, address));
            }
        }
        std::vector<lb::FlowEndpoints::Endpoint> endpoints;
        for (const auto& [socket, id] : with_flows) {
            endpoints.push_back({socket.address, socket.port, id});
        }
        row->flow_endpoints = lb::FlowEndpoints(std::move(endpoints));
        std::shared_ptr<lb::SourceFilter> filter;
        if (service.source_ranges) {
            filter = std::make_shared<lb::SourceFilter>(lb::SourceFilter{true, *service.source_ranges});
        }
        const auto add = [&](const IpAddr& address, L4Port port, lb::FrontendClass cls,
                             bool is_local = false) {
            const auto set = static_cast<uint8_t>((is_local ? 2 : 0) + (address.is_v4() ? 0 : 1));
            frontends.push_back({address, port, service.protocol, cls, set, row, filter});
            if (service.inside) {
                frontends.back().inside_set = static_cast<uint8_t>(address.is_v4() ? 4 : 5);
            }
            if (cls != lb::FrontendClass::NodePort) {
                frontends.back().snat_group = service.snat_group;
            }
        };
        for (const auto& [address, port] : service.frontends) {
            add(address, port, lb::FrontendClass::ExternalIp);
        }
        for (const auto& [address, port] : service.local_frontends) {
            add(address, port, lb::FrontendClass::ExternalIp, true);
        }
        for (const L4Port port : service.node_ports) {
            for (const auto& [address, twin] : own_addresses()) {
                add(address, port, lb::FrontendClass::NodePort);
            }
        }
        compiled.push_back(std::move(row));
    }
    auto table = lb::ServiceTable::build(std::move(frontends), std::move(compiled), snapshot_.services.get());
    PENSTOCK_CHECK(table);
    snapshot_.marked = nullptr;
    snapshot_.services = *table;
    ++snapshot_.generation;
}

void VirtualGateway::take_over(const config::Snapshot& from_control) {
    config::Snapshot next = from_control;
    next.routes = snapshot_.routes;
    next.snat = snapshot_.snat;
    next.generation = snapshot_.generation + 1;
    snapshot_ = std::move(next);
}

void VirtualGateway::use(const config::Snapshot& prepared) {
    config::Snapshot next = prepared;
    next.snat = snapshot_.snat;
    next.generation = snapshot_.generation + 1;
    snapshot_ = std::move(next);
}

void VirtualGateway::set_pod_cidrs(std::vector<Prefix> pod_cidrs) {
    snapshot_.cluster_clients =
        std::make_shared<lb::ClusterClients>(snapshot_.cluster_clients->changed_to(std::move(pod_cidrs)));
    ++snapshot_.generation;
}

void VirtualGateway::set_rejects_closed_vip_ports(bool rejects) {
    snapshot_.rejects_closed_vip_ports = rejects;
    ++snapshot_.generation;
}

void VirtualGateway::set_packets(const config::PacketPolicy& packets) {
    snapshot_.packets = packets;
    ++snapshot_.generation;
}

void VirtualGateway::set_marks(const std::vector<lb::FrontendTuple>& by_mark) {
    snapshot_.marked = std::make_shared<const lb::MarkedFrontends>(*snapshot_.services, by_mark);
    ++snapshot_.generation;
}

void VirtualGateway::set_blocked_sources(const route::PrefixSet& blocked) {
    snapshot_.blocked_sources = blocked.empty() ? nullptr : std::make_shared<const route::PrefixSet>(blocked);
    ++snapshot_.generation;
}

void VirtualGateway::rebuild_routes() {
    std::vector<route::Route> routes;
    std::vector<route::Neighbour> neighbours;
    if (routes_) {
        // Clients behind a router on the uplink use the default routes.
        routes = {{*Prefix::parse("10.80.1.0/24"), kUp, {}, 0},
                  {*Prefix::parse("10.80.2.0/24"), kCluster, {}, 0},
                  {*Prefix::parse("0.0.0.0/0"), kUp, kClient, 100},
                  {*Prefix::parse("fd00:80:1::/64"), kUp, {}, 0},
                  {*Prefix::parse("fd00:80:2::/64"), kCluster, {}, 0},
                  {*Prefix::parse("::/0"), kUp, kClient6, 100}};
    }
    uint32_t first_id = 0;
    for (const IpFamily family : kFamilies) {
        const IpAddr& client = family == IpFamily::V4 ? kClient : kClient6;
        neighbours.push_back(
            {NeighbourId{first_id}, kUp, client, kClientMac, route::NeighbourState::Reachable});
        for (uint8_t host = 11; host < 251; ++host) {
            const bool resolved =
                std::find(unresolved_.begin(), unresolved_.end(), host) == unresolved_.end();
            neighbours.push_back({NeighbourId{first_id + host}, kCluster, backend_address(host, family),
                                  backend_mac(host),
                                  resolved ? route::NeighbourState::Stale : unresolved_state_});
        }
        first_id += 256;
    }
    std::vector<route::LocalAddress> locals;
    for (const auto& [address, port] : own_addresses()) {
        locals.push_back({port, address, static_cast<uint8_t>(address.is_v4() ? 24 : 64)});
    }
    snapshot_.routes = route::RouteTable::build(
        std::move(routes), std::move(neighbours), std::move(locals),
        {{kUp, kUpMac, mtu_[kUp.value], true}, {kCluster, kClusterMac, mtu_[kCluster.value], true}},
        present_vips_);
    ++snapshot_.generation;
}

void VirtualGateway::set_unresolved(std::vector<uint8_t> backends, route::NeighbourState state) {
    unresolved_ = std::move(backends);
    unresolved_state_ = state;
    rebuild_routes();
}
void VirtualGateway::remove_routes() {
    routes_ = false;
    rebuild_routes();
}
void VirtualGateway::set_present_vips(const std::vector<IpAddr>& vips) {
    present_vips_.clear();
    for (const IpAddr& vip : vips) {
        present_vips_.push_back({kUp, vip, static_cast<uint8_t>(vip.bits())});
    }
    rebuild_routes();
}
void VirtualGateway::set_link_vips(const std::vector<IpAddr>& vips, const std::vector<IpAddr>& snat) {
    std::vector<route::LinkVip> on_uplink;
    for (const IpAddr& vip : vips) {
        on_uplink.push_back({vip, kUp});
    }
    for (const IpAddr& address : snat) {
        on_uplink.push_back({address, kUp, true});
    }
    snapshot_.link_vips = on_uplink.empty() ? nullptr : std::make_shared<const route::LinkVips>(on_uplink);
    ++snapshot_.generation;
}
void VirtualGateway::set_strays(std::shared_ptr<const shares::Strays> strays) {
    snapshot_.strays = std::move(strays);
    ++snapshot_.generation;
}
void VirtualGateway::set_mtu(uint16_t mtu) {
    mtu_.fill(mtu);
    rebuild_routes();
}
void VirtualGateway::set_mtu(NicPortId port, uint16_t mtu) {
    mtu_.at(port.value) = mtu;
    rebuild_routes();
}

Outcome VirtualGateway::send(const std::vector<uint8_t>& frame, NicPortId port, WorkerId receiver,
                             uint16_t mark) {
    pipeline::Arrival arrival{port, {}, mark};
    arrival.note.receiver = receiver;
    return send_one(frame, arrival);
}

Outcome VirtualGateway::send_from_host(const std::vector<uint8_t>& frame, NicPortId port, WorkerId server) {
    pipeline::Arrival arrival{port, {}, 0};
    arrival.note.receiver = server;
    arrival.note.from_host = true;
    return send_one(frame, arrival);
}

Outcome VirtualGateway::send_one(const std::vector<uint8_t>& frame, const pipeline::Arrival& arrival) {
    InFlight packet{0, {}, arrival, 0};
    packet.frame.reserve(kHeadroom + frame.size() + kTailroom);
    packet.frame = frame;
    Outcome outcome;
    run(arrival.note.receiver, {&packet, 1}, {&outcome, 1});
    return outcome;
}

std::vector<Outcome> VirtualGateway::send_burst(const std::vector<std::vector<uint8_t>>& frames,
                                                NicPortId port, WorkerId receiver) {
    std::vector<Outcome> outcomes(frames.size());
    std::vector<InFlight> packets;
    for (size_t i = 0; i < frames.size(); ++i) {
        pipeline::Arrival arrival{port, {}, 0};
        arrival.note.receiver = receiver;
        packets.push_back({i, frames[i], arrival, 0});
    }
    run(receiver, packets, outcomes);
    return outcomes;
}

void VirtualGateway::run(WorkerId worker, std::span<InFlight> packets, std::span<Outcome> outcomes) {
    for (size_t first = 0; first < packets.size(); first += limits::kBurstMax) {
        const std::span<InFlight> taken =
            packets.subspan(first, std::min<size_t>(packets.size() - first, limits::kBurstMax));
        pipeline::WorkerContext& context = begin_round(*workers_[worker.value]);
        pipeline::Burst& burst = workers_[worker.value]->burst;
        burst.count = 0;
        for (InFlight& packet : taken) {
            const size_t length = packet.frame.size();
            packet.frame.insert(packet.frame.begin(), kHeadroom, 0xee);
            packet.frame.resize(packet.frame.size() + kTailroom);
            burst.add(nullptr, packet.frame.data() + kHeadroom, static_cast<uint16_t>(length),
                      static_cast<uint16_t>(length + kTailroom), packet.arrival, kHeadroom);
        }
        // As rx.cpp does for a receive queue and for the handoff ring.
        burst.looks_first = std::ranges::all_of(taken, [&](const InFlight& packet) {
            const pipeline::Arrival& arrival = packet.arrival;
            return arrival.note.handoffs > 0 ||
                   (!arrival.note.from_host &&
                    context.ports[arrival.port.value].promises.flow_stays_on_queue);
        });
        burst.was_handed = std::ranges::all_of(
            taken, [](const InFlight& packet) { return packet.arrival.note.handoffs > 0; });
        pipeline::stages_of(context)(context, burst);
        collect_own_segments(context);
        std::vector<std::pair<WorkerId, InFlight>> handed;
        for (uint32_t i = 0; i < burst.count; ++i) {
            InFlight& packet = taken[i];
            packet.frame.erase(packet.frame.begin(),
                               packet.frame.begin() + (burst.data[i] - packet.frame.data()));
            packet.frame.resize(burst.length[i]);
            if (burst.verdict[i] == Verdict::Handoff &&
                packet.handoffs < pipeline::handoffs_max(options_.workers)) {
                packet.arrival = burst.arrival[i];
                packet.arrival.note = packet.arrival.note.crossing();
                ++packet.handoffs;
                handed.emplace_back(burst.handoff_to[i], std::move(packet));
                continue;
            }
            finish(context, burst, i, packet, outcomes);
        }
        for (uint8_t w = 0; w < workers_.size() && !handed.empty(); ++w) {
            std::vector<InFlight> onward;
            for (auto& [to, packet] : handed) {
                if (to.value == w) {
                    onward.push_back(std::move(packet));
                }
            }
            run({w}, onward, outcomes);
        }
        run_ready_fragments(worker, outcomes);
    }
}

void VirtualGateway::finish(pipeline::WorkerContext& context, const pipeline::Burst& burst, uint32_t i,
                            InFlight& packet, std::span<Outcome> outcomes) {
    const bool is_released = packet.index == kReleased;
    Outcome& outcome = is_released ? released_.emplace_back() : outcomes[packet.index];
    outcome.verdict = burst.verdict[i];
    outcome.reason = burst.reason[i];
    outcome.egress = burst.verdict[i] == Verdict::Punt ? burst.arrival[i].port : burst.egress[i];
    outcome.worker = context.self;
    outcome.handoffs = packet.handoffs;
    if (burst.verdict[i] == Verdict::Await) {
        outcome.frame = packet.frame;
        context.fragments.fill(burst.slot[i], reinterpret_cast<rte_mbuf*>(++last_handle_),
                               burst.arrival[i].port, burst.arrival[i].note);
        if (is_released) {
            outcome.came = packet.came;
        }
        packet.index = kReleased;
        packet.came = packet.frame;
        waiting_.emplace(last_handle_, std::move(packet));
        return;
    }
    outcome.frame = std::move(packet.frame);
    if (is_released) {
        outcome.came = std::move(packet.came);
    }
    if (burst.verdict[i] == Verdict::Split) {
        split(outcome, burst.parsed[i], burst.split[i].mtu);
        outcome.waits = burst.split[i].waits;
    }
}

void VirtualGateway::split(Outcome& outcome, const packet::Parsed& parsed, uint16_t mtu) {
    const bool is_v4 = packet::ether_type(outcome.frame.data()) == packet::kEtherTypeIpv4;
    auto cut = is_v4 ? cut_frames<packet::Ipv4Fragments>(outcome.frame, parsed.l3_offset, mtu)
                     : cut_frames<packet::Ipv6Fragments>(outcome.frame, parsed.l3_offset, mtu);
    if (!cut) {
        outcome.verdict = Verdict::Drop;
        outcome.reason = DropReason::PacketTooBig;
        return;
    }
    outcome.fragments = std::move(*cut);
}

void VirtualGateway::run_ready_fragments(WorkerId worker, std::span<Outcome> outcomes) {
    pipeline::FragmentTable& fragments = workers_[worker.value]->context->fragments;
    if (!fragments.has_ready()) {
        return;
    }
    std::vector<InFlight> ready;
    while (fragments.has_ready() && ready.size() < limits::kBurstMax) {
        fragments.take_ready([&](rte_mbuf* handle, NicPortId port, pipeline::HandoffNote note) {
            InFlight packet = std::move(waiting_.extract(reinterpret_cast<uintptr_t>(handle)).mapped());
            packet.arrival = {port, note, 0};
            ready.push_back(std::move(packet));
        });
    }
    run(worker, ready, outcomes);
}

void VirtualGateway::expire_fragments() {
    for (uint8_t w = 0; w < workers_.size(); ++w) {
        if (workers_[w]->is_new) {
            continue;
        }
        pipeline::WorkerContext& context = begin_round(*workers_[w]);
        context.fragments.expire(context.now, [&](rte_mbuf* handle) {
            const auto expired = waiting_.extract(reinterpret_cast<uintptr_t>(handle));
            released_.push_back({.verdict = Verdict::Drop,
                                 .reason = DropReason::FragmentExpired,
                                 .frame = expired.mapped().frame,
                                 .worker = {w},
                                 .came = expired.mapped().came});
        });
    }
}

std::vector<Outcome> VirtualGateway::take_released() {
    return std::exchange(released_, {});
}

void VirtualGateway::age() {
    for (const auto& state : workers_) {
        pipeline::WorkerContext& context = begin_round(*state);
        pipeline::age_connections(context, context.connections.capacity());
        collect_own_segments(context);
    }
}

void VirtualGateway::establish_all() {
    for (const auto& state : workers_) {
        pipeline::WorkerContext& context = begin_round(*state);
        for (uint32_t unit = 0; unit < context.connections.high_water(); ++unit) {
            if (!context.connections.is_live(unit) || !context.connections.at({unit}).is_tcp()) {
                continue;
            }
            if (context.connections.at({unit}).tcp_state() <= conn::TcpState::SynReceived) {
                context.connections.set_state({unit}, conn::TcpState::Established, context.now_coarse);
            }
        }
    }
}

void VirtualGateway::order(const conn::FlowOrder& order) {
    auto orders = std::make_shared<conn::FlowOrders>(*snapshot_.flow_orders);
    orders->orders.push_back(order);
    snapshot_.flow_orders = orders;
    ++snapshot_.generation;
}

void VirtualGateway::work_off_orders() {
    for (const auto& state : workers_) {
        pipeline::WorkerContext& context = *state->context;
        do {
            begin_round(*state);
        } while (pipeline::work_off_flow_orders(context) > 0 && (collect_own_segments(context), true));
        collect_own_segments(context);
    }
}

void VirtualGateway::collect_own_segments(pipeline::WorkerContext& context) {
    pipeline::OwnSegments& own = context.own_segments;
    for (uint32_t i = 0; i < own.count; ++i) {
        const pipeline::OwnSegment& segment = own.at[i];
        own_segments_.push_back({.verdict = segment.to_host ? Verdict::Punt : Verdict::Transmit,
                                 .frame = {segment.frame.begin(), segment.frame.begin() + segment.length},
                                 .egress = segment.egress,
                                 .worker = context.self});
    }
    own.count = 0;
}

std::vector<Outcome> VirtualGateway::take_own_segments() {
    return std::exchange(own_segments_, {});
}

uint64_t VirtualGateway::orders_done() const {
    uint64_t done = ~uint64_t{0};
    for (const auto& state : workers_) {
        done = std::min(done, state->context->flow_orders.done());
    }
    return done;
}

BackendId VirtualGateway::backend_of(const TestService& service, uint8_t host, IpFamily family) {
    return backend_id(service, backend_address(host, family));
}

void VirtualGateway::set_idle_limit(const TestService& service, uint32_t seconds) {
    auto limits = std::make_shared<conn::IdleLimits>(*snapshot_.idle_limits);
    const ServiceId id = service_id(service);
    limits->seconds.resize(std::max<size_t>(limits->seconds.size(), id.value + 1));
    limits->seconds[id.value] = seconds;
    snapshot_.idle_limits = limits;
    ++snapshot_.generation;
}

uint64_t VirtualGateway::count(stats::Counter counter) const {
    uint64_t sum = 0;
    for (const auto& state : workers_) {
        sum += state->worker_counters[counter].read();
    }
    return sum;
}

uint64_t VirtualGateway::replies_misplaced(NicPortId port) const {
    uint64_t sum = 0;
    for (const auto& state : workers_) {
        sum += state->worker_counters.ports[port.value].replies_misplaced.read();
    }
    return sum;
}

uint64_t VirtualGateway::connections() const {
    uint64_t sum = 0;
    for (const auto& state : workers_) {
        sum += state->context->connections.size();
    }
    return sum;
}

stats::ServiceCounters& VirtualGateway::service_counters(uint32_t worker, const std::string& name) {
    for (const auto& [key, id] : service_ids_) {
        if (key.substr(0, key.find('/')) == name) {
            return workers_[worker]->services[id.value];
        }
    }
    PENSTOCK_CHECK(!"the test names a Service that it has published");
    return workers_[worker]->services[0];
}

std::vector<pipeline::FlowRecord> VirtualGateway::take_flow_records() {
    std::vector<pipeline::FlowRecord> records;
    for (const auto& state : workers_) {
        while (const auto record = state->flow_queue->pop()) {
            records.push_back(*record);
        }
    }
    return records;
}

uint64_t VirtualGateway::flow_records_lost() const {
    uint64_t sum = 0;
    for (const auto& state : workers_) {
        sum += state->flow_log->lost.read();
    }
    return sum;
}

}  // namespace penstock::test
