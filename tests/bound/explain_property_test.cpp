// SPDX-License-Identifier: Apache-2.0
// `explain` against the pipeline that it describes. Random configurations and packets; explain is called for
// the packet first, then run_stages() processes the packet on the contexts of the same workers. The loops of
// the workers are stopped, so nothing else changes their state in between.
//
// The draws follow PENSTOCK_SEED. The workers' hash keys are random in each run. A replay therefore repeats
// the configurations and the packets of new flows, but not the choices of random schedulers and of SNAT
// ports, and the packets of known flows only if these choices do not matter.
#include <gtest/gtest.h>
#include <rte_cycles.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "dataplane/conn/sctp_state.hpp"
#include "dataplane/conn/tcp_state.hpp"
#include "dataplane/packet/parse.hpp"
#include "dataplane/pipeline/stages.hpp"
#include "dataplane/worker/worker_set.hpp"
#include "dataplane/worker/worker_set_impl.hpp"
#include "tests/support/eal_fixture.hpp"
#include "tests/support/packet_builder.hpp"
#include "tests/support/prng.hpp"
#include "tests/support/reply_hashes.hpp"
#include "tests/support/sanitizers.hpp"
#include "tests/support/virtual_gateway.hpp"

namespace penstock::test {
namespace explain_property_test {

using packet::FlowKey;

constexpr uint32_t kWorlds = 150;  // per number of workers
constexpr uint32_t kPacketsPerWorld = 45;
constexpr uint16_t kHeadroom = 128, kTailroom = 128;  // of an mbuf
constexpr nat::PortRange kNarrowPorts{2'048, 2'175};

const MacAddr kSenderMac{{2, 0, 0, 0, 9, 9}};
constexpr uint8_t kHostsOwn = 1;  // 10.80.2.1 and fd00:80:2::1: endpoints on the gateway host
constexpr uint8_t kWithoutRoute = 99;
constexpr uint8_t kUnresolved = 200;
constexpr uint8_t kPodRouter = 11;

template <typename T>
T one_of(Prng& random, const std::vector<T>& list) {
    return list[random.below(list.size())];
}

// What has been compared, by kind.
class Counts {
 public:
    void add(const std::string& kind) { ++counts_[kind]; }
    [[nodiscard]] uint64_t of(const std::string& kind) const {
        const auto found = counts_.find(kind);
        return found == counts_.end() ? 0 : found->second;
    }
    [[nodiscard]] std::string to_string() const {
        std::string text;
        for (const auto& [kind, count] : counts_) {
            text += "  " + kind + ": " + std::to_string(count) + "\n";
        }
        return text;
    }

 private:
    std::map<std::string, uint64_t> counts_;
};

const std::vector<IpAddr>& vips() {
    static const std::vector<IpAddr> list{IpAddr::v4(80, 11, 12, 10), IpAddr::v4(80, 11, 12, 11),
                                          *IpAddr::parse("2001:db8:80::10"),
                                          *IpAddr::parse("2001:db8:80::11")};
    return list;
}
constexpr std::array<L4Port, 4> kPorts{53, 80, 443, 8080};
constexpr std::array<L4Port, 2> kNodePorts{30'080, 30'443};

struct World {
    std::vector<TestService> services;
    config::Snapshot snapshot;
    bool is_narrow = false;  // few SNAT ports
};

// Frontends are unique over the Services of a world.
using Taken = std::vector<std::pair<Protocol, std::pair<IpAddr, L4Port>>>;

TestService some_service(Prng& random, size_t index, Taken& taken) {
    TestService service;
    service.name = "s" + std::to_string(index);
    service.protocol =
        one_of<Protocol>(random, {Protocol::Tcp, Protocol::Tcp, Protocol::Udp, Protocol::Sctp});
    const auto add = [&](auto& list) {
        const std::pair<IpAddr, L4Port> frontend{one_of(random, vips()), kPorts[random.below(kPorts.size())]};
        if (std::ranges::find(taken, std::pair(service.protocol, frontend)) == taken.end()) {
            taken.emplace_back(service.protocol, frontend);
            list.push_back(frontend);
        }
    };
    for (uint64_t count = random.between(1, 4); count > 0; --count) {
        add(service.frontends);
    }
    const auto some_backends = [&] {
        std::vector<uint8_t> hosts;
        if (random.one_in(6)) {
            return hosts;
        }
        for (const uint8_t host :
             {kHostsOwn, uint8_t{11}, uint8_t{12}, uint8_t{13}, kWithoutRoute, kUnresolved}) {
            if (random.one_in(host >= 11 && host <= 13 ? 2 : 8)) {
                hosts.push_back(host);
            }
        }
        return hosts;
    };
    service.backends = some_backends();
    if (random.one_in(3)) {
        add(service.local_frontends);
        service.local_backends = some_backends();
    }
    if (const L4Port port = kNodePorts[random.below(2)]; random.one_in(2)) {
        const std::pair<IpAddr, L4Port> mark{kUpAddress, port};
        if (std::ranges::find(taken, std::pair(service.protocol, mark)) == taken.end()) {
            taken.emplace_back(service.protocol, mark);
            service.node_ports = {port};
        }
    }
    service.backend_port = random.one_in(2) ? L4Port{9'376} : L4Port{80};
    service.source = random.one_in(2) ? lb::SourceMode::Keep : lb::SourceMode::Translate;
    service.when_empty = one_of<lb::EmptyAction>(
        random, {lb::EmptyAction::Reject, lb::EmptyAction::Drop, lb::EmptyAction::DropNoLocal});
    service.scheduler = random.one_in(4) ? lb::SchedulerKind::SourceHash
                                         : lb::kSchedulerKinds[random.below(lb::kSchedulerKinds.size())];
    if (random.one_in(5)) {
        service.source_ranges = {*Prefix::parse("10.80.1.0/30"), *Prefix::parse("fd00:80:1::/127")};
    }
    if (random.one_in(3)) {
        service.affinity_timeout_s = 600;
    }
    if (random.one_in(4)) {
        service.inside = TestService::Inside{
            random.one_in(2) ? lb::SourceMode::Keep : lb::SourceMode::Translate, some_backends()};
    }
    if (random.one_in(4)) {
        service.endpoints_of = random.one_in(2) ? IpFamily::V4 : IpFamily::V6;
    }
    return service;
}

std::shared_ptr<const route::RouteTable> some_routes(Prng& random) {
    std::vector<route::Route> routes;
    const auto add = [&](const char* prefix, NicPortId egress, std::optional<IpAddr> gateway = {}) {
        if (!random.one_in(12)) {
            routes.push_back({*Prefix::parse(prefix), egress, gateway, 100});
        }
    };
    add("10.80.1.0/24", kUp);
    add("10.80.2.0/24", kCluster);
    add("0.0.0.0/0", kUp, kClient);
    add("10.244.0.0/16", kCluster, backend_address(kPodRouter));
    add("fd00:80:1::/64", kUp);
    add("fd00:80:2::/64", kCluster);
    add("::/0", kUp, kClient6);
    routes.push_back({*Prefix::parse("10.80.2.99/32"), {}, {}, 0});
    routes.push_back({*Prefix::parse("fd00:80:2::63/128"), {}, {}, 0});
    std::vector<route::Neighbour> neighbours;
    for (const IpFamily family : {IpFamily::V4, IpFamily::V6}) {
        const auto know = [&](NicPortId port, const IpAddr& address, const MacAddr& mac) {
            const auto state = random.one_in(12)  ? route::NeighbourState::Failed
                               : random.one_in(8) ? route::NeighbourState::Resolving
                               : random.one_in(2) ? route::NeighbourState::Stale
                                                  : route::NeighbourState::Reachable;
            neighbours.push_back(
                {NeighbourId{static_cast<uint32_t>(neighbours.size())}, port, address, mac, state});
        };
        know(kUp, family == IpFamily::V4 ? kClient : kClient6, kClientMac);
        for (const uint8_t host : {uint8_t{11}, uint8_t{12}, uint8_t{13}}) {
            know(kCluster, backend_address(host, family), backend_mac(host));
        }
    }
    std::vector<route::LocalAddress> locals{{kUp, kUpAddress, 24},
                                            {kUp, kUpAddress6, 64},
                                            {kCluster, kClusterAddress, 24},
                                            {kCluster, kClusterAddress6, 64}};
    if (random.one_in(6)) {
        locals.push_back({kUp, vips()[0], 32});  // an external IP that the host has
    }
    return route::RouteTable::build(std::move(routes), std::move(neighbours), std::move(locals),
                                    {{kUp, kUpMac, 1500, true}, {kCluster, kClusterMac, 1500, true}});
}

std::shared_ptr<const nat::SnatConfig> some_snat(Prng& random, bool is_narrow) {
    auto snat = std::make_shared<nat::SnatConfig>();
    const bool is_shared = random.one_in(2);
    const bool fits_any = random.one_in(3);
    for (const auto& [address, port] :
         std::vector<std::pair<IpAddr, NicPortId>>{{kUpAddress, kUp},
                                                   {kClusterAddress, kCluster},
                                                   {kUpAddress6, kUp},
                                                   {kClusterAddress6, kCluster}}) {
        if (!random.one_in(10)) {
            snat->addresses.push_back({address, fits_any ? NicPortId() : port, is_shared});
        }
    }
    if (random.one_in(3)) {
        snat->addresses.push_back({IpAddr::v4(10, 80, 2, 9), NicPortId(), false});
        snat->addresses.push_back({v6_on_link(2, 9), NicPortId(), false});
    }
    if (is_narrow) {
        snat->ports = kNarrowPorts;
    }
    return snat;
}

// `gateway` only compiles the Services and keeps their ids.
World some_world(Prng& random, VirtualGateway& gateway) {
    World world;
    Taken taken;
    for (size_t count = random.between(2, 6), index = 0; index < count; ++index) {
        world.services.push_back(some_service(random, index, taken));
    }
    world.is_narrow = random.one_in(4);
    if (world.is_narrow) {
        world.services[0].backends = {12};
        world.services[0].source = lb::SourceMode::Translate;
        world.services[0].source_ranges = {};
        world.services[0].affinity_timeout_s = 0;
    }
    gateway.publish(world.services);
    gateway.set_pod_cidrs(random.one_in(2) ? std::vector{*Prefix::parse("10.244.0.0/16")}
                                           : std::vector<Prefix>());
    gateway.set_rejects_closed_vip_ports(random.one_in(2));
    config::PacketPolicy packets{.passes_ip_options = random.one_in(2),
                                 .aborts_sctp = random.one_in(2),
                                 .picks_up_midstream = random.one_in(2)};
    for (config::ReversePath& mode : packets.reverse_path) {
        mode = one_of<config::ReversePath>(
            random, {config::ReversePath::Feasible, config::ReversePath::Feasible,
                     config::ReversePath::Strict, config::ReversePath::Loose, config::ReversePath::Off});
    }
    gateway.set_packets(packets);
    route::PrefixSet blocked;
    if (random.one_in(3)) {
        blocked = route::PrefixSet({*Prefix::parse("10.80.1.4/32"), *Prefix::parse("fd00:80:1::4/128")});
    }
    gateway.set_blocked_sources(blocked);
    world.snapshot = gateway.snapshot();
    world.snapshot.routes = some_routes(random);
    world.snapshot.snat = some_snat(random, world.is_narrow);
    return world;
}

struct Drawn {
    worker::ExplainQuery query;
    std::vector<uint8_t> frame;
};

enum class Extra : uint8_t { None, TtlOne, Options };

std::vector<uint8_t> frame_of(Prng& random, const worker::ExplainQuery& query, Extra extra = Extra::None) {
    const FlowKey& key = query.key;
    PacketBuilder builder =
        eth().from_mac(kSenderMac.to_string()).to_mac((query.port == kUp ? kUpMac : kClusterMac).to_string());
    const uint8_t ttl = extra == Extra::TtlOne ? 1 : 64;
    if (key.source.is_v4()) {
        builder.ipv4(key.source.to_string(), key.destination.to_string()).ttl(ttl);
        if (extra == Extra::Options) {
            builder.options({1, 1, 1, 0});
        }
    } else {
        builder.ipv6(key.source.to_string(), key.destination.to_string()).hop_limit(ttl);
    }
    switch (key.protocol) {
        case Protocol::Tcp:
            builder.tcp(key.source_port, key.destination_port, query.tcp_not_syn ? "A" : "S")
                .seq(static_cast<uint32_t>(random.next()))
                .ack(query.tcp_not_syn ? static_cast<uint32_t>(random.next()) : 0);
            break;
        case Protocol::Udp:
            builder.udp(key.source_port, key.destination_port).payload("question");
            break;
        case Protocol::Sctp:
            builder.sctp(key.source_port, key.destination_port, 0)
                .sctp_init(static_cast<uint32_t>(random.next()) | 1);
            break;
    }
    return builder.build();
}

struct Outcome {
    Verdict verdict = Verdict::None;
    DropReason reason{};
    bool is_answer = false;
    NicPortId egress;  // for Punt: the port of the twin
    IpAddr next_hop;   // for Hold
    std::vector<uint8_t> frame;
    bool opened = false;     // a connection
    bool reclaimed = false;  // a SNAT port
};

// Workers whose loops are stopped.
class StoppedWorkers {
 public:
    explicit StoppedWorkers(uint32_t count) : count_(count) {
        worker::WorkerSetOptions options;
        options.connections_per_worker = 8'192;
        options.affinity_entries = 4'096;
        for (uint32_t w = 0; w < count_; ++w) {
            options.lcores.push_back(w + 1);
            options.cpus.push_back(worker_cpu());
        }
        // Without receive queues: the workers never receive anything themselves.
        for (const auto& [id, mac] : {std::pair(kUp, kUpMac), std::pair(kCluster, kClusterMac)}) {
            worker::PortPlan& port = options.ports.emplace_back();
            port.id = id;
            port.rx_queues = 0;
            port.tx_queues = static_cast<uint16_t>(count_);
            port.mac = mac;
            if (count_ == 4) {
                port.flow_stays_on_queue = true;
                port.reply_hash = hash_in_turn(128, count_);
            }
        }
        auto started = worker::WorkerSet::start(std::move(options), std::make_unique<config::Snapshot>());
        PENSTOCK_CHECK(started);
        workers_ = std::move(*started);
        workers_->stop();
        for (uint8_t w = 0; w < count_; ++w) {
            // Rate limits depend on the time, which explain does not predict.
            pipeline::WorkerContext& own = context({w});
            own.rejects = unlimited(own);
            own.flow_orders.answering = unlimited(own);
        }
    }

    void publish(const config::Snapshot& snapshot) {
        workers_->publish(std::make_unique<config::Snapshot>(snapshot));
    }
    [[nodiscard]] worker::Inspector inspect() const { return workers_->inspect(); }
    [[nodiscard]] uint32_t count() const { return count_; }

    // Not const: the loops are stopped, and this thread acts in their place.
    pipeline::WorkerContext& context(WorkerId id) {
        return const_cast<pipeline::WorkerContext&>(workers_->impl().workers_[id.value]->context());
    }

    // As the loop of the workers, and its rings, would do.
    Outcome run(std::vector<uint8_t> frame, NicPortId port, WorkerId receiver) {
        const uint64_t opened = sum(stats::Counter::NewConnections);
        const uint64_t reclaimed = sum(stats::Counter::ReclaimedSnatPorts);
        pipeline::Arrival arrival{port, {}, 0};
        arrival.note.receiver = receiver;
        WorkerId self = receiver;
        for (uint32_t handoffs = 0;; ++handoffs) {
            std::vector<uint8_t> buffer(kHeadroom + frame.size() + kTailroom);
            std::memcpy(buffer.data() + kHeadroom, frame.data(), frame.size());
            pipeline::WorkerContext& own = context(self);
            own.begin_round(workers_->impl().publisher->read(), {rte_rdtsc()});
            burst_.count = 0;
            burst_.add(nullptr, buffer.data() + kHeadroom, static_cast<uint16_t>(frame.size()),
                       static_cast<uint16_t>(frame.size() + kTailroom), arrival, kHeadroom);
            pipeline::run_stages(own, burst_);
            own.own_segments.count = 0;
            frame.assign(burst_.data[0], burst_.data[0] + burst_.length[0]);
            if (burst_.verdict[0] != Verdict::Handoff || handoffs == pipeline::handoffs_max(count_)) {
                break;
            }
            arrival = burst_.arrival[0];
            ++arrival.note.handoffs;
            arrival.note = pipeline::HandoffNote::unpacked(arrival.note.packed());
            self = burst_.handoff_to[0];
        }
        const Verdict verdict = burst_.verdict[0];
        return {.verdict = verdict,
                .reason = burst_.reason[0],
                .is_answer = burst_.answers[0],
                .egress = verdict == Verdict::Punt ? burst_.arrival[0].port : burst_.egress[0],
                .next_hop = burst_.next_hop[0],
                .frame = std::move(frame),
                .opened = sum(stats::Counter::NewConnections) > opened,
                .reclaimed = sum(stats::Counter::ReclaimedSnatPorts) > reclaimed};
    }

    template <typename Visit>
    void for_each_unit(Visit&& visit) {
        for (uint8_t w = 0; w < count_; ++w) {
            pipeline::WorkerContext& own = context({w});
            for (uint32_t unit = 0; unit < own.connections.high_water(); ++unit) {
                if (own.connections.is_live(unit)) {
                    visit(own, ConnectionIndex{unit});
                }
            }
        }
    }

    // Any live connection; its worker is null if there is none.
    std::pair<pipeline::WorkerContext*, ConnectionIndex> some_connection(Prng& random) {
        uint64_t count = 0;
        std::pair<pipeline::WorkerContext*, ConnectionIndex> chosen{};
        for_each_unit([&](pipeline::WorkerContext& own, ConnectionIndex index) {
            if (random.below(++count) == 0) {
                chosen = {&own, index};
            }
        });
        return chosen;
    }

    void close_all() {
        for_each_unit([](pipeline::WorkerContext& own, ConnectionIndex index) {
            pipeline::close_connection(own, index);
        });
    }

    void establish_all() {
        for_each_unit([](pipeline::WorkerContext& own, ConnectionIndex index) {
            const conn::Entry& entry = own.connections.at(index);
            if (entry.is_tcp() && entry.tcp_state() <= conn::TcpState::SynReceived) {
                set_state(own, index, entry.tcp_state(), conn::TcpState::Established);
            } else if (entry.is_sctp() && conn::is_opening(entry.sctp_state())) {
                set_state(own, index, entry.sctp_state(), conn::SctpState::Established);
            }
        });
    }

    // Puts a connection into a state that packets would produce only after many steps.
    static void set_state(pipeline::WorkerContext& own, ConnectionIndex index, auto before, auto after) {
        auto& open = own.counters.backends[own.connections.at(index).backend.value].open;
        if (conn::is_open(before) != conn::is_open(after)) {
            conn::is_open(after) ? open.add(1) : open.subtract(1);
        }
        own.connections.set_state(index, after, own.now_coarse);
    }
    static void change_state(Prng& random, pipeline::WorkerContext& own, ConnectionIndex index) {
        const conn::Entry& entry = own.connections.at(index);
        if (entry.protocol == Protocol::Udp) {
            own.connections.set_state(index, conn::DatagramState::TwoWay, own.now_coarse);
        } else if (entry.is_sctp()) {
            set_state(own, index, entry.sctp_state(),
                      static_cast<conn::SctpState>(random.below(conn::kSctpStates)));
        } else {
            set_state(own, index, entry.tcp_state(),
                      static_cast<conn::TcpState>(random.below(conn::kTcpStates)));
        }
    }

 private:
    static pipeline::RejectLimiter unlimited(const pipeline::WorkerContext& context) {
        return {1'000'000'000, 1'000'000'000, context.rate};
    }
    [[nodiscard]] uint64_t sum(stats::Counter counter) const {
        uint64_t total = 0;
        for (uint8_t w = 0; w < count_; ++w) {
            total += workers_->inspect().counter({w}, counter);
        }
        return total;
    }

    uint32_t count_;
    pipeline::Burst burst_;
    std::unique_ptr<worker::WorkerSet> workers_;
};

IpAddr some_source(Prng& random) {
    const uint8_t host = static_cast<uint8_t>(random.between(2, 4));
    switch (random.below(24)) {
        case 0:
            return IpAddr::v4(198, 51, 100, host);  // behind the router on the uplink
        case 1:
            return *IpAddr::parse("2001:db8:99::5");
        case 2:
            return IpAddr::v4(10, 244, 3, host);  // a Pod
        case 3:
            return backend_address(static_cast<uint8_t>(random.between(11, 13)));
        case 4:
            return backend_address(static_cast<uint8_t>(random.between(11, 13)), IpFamily::V6);
        case 5:
            return one_of<IpAddr>(random, {kUpAddress, kClusterAddress6, IpAddr::v4(10, 80, 2, 9),
                                           IpAddr::v4(10, 80, 1, 255), backend_address(kWithoutRoute)});
        case 6:
            return one_of(random, vips());
        case 7:
            return one_of<IpAddr>(random,
                                  {IpAddr::v4(127, 0, 0, 1), IpAddr::v4(0, 0, 0, 0), IpAddr::v4(224, 0, 0, 9),
                                   *IpAddr::parse("fe80::7"), *IpAddr::parse("::1")});
        default:
            return random.one_in(2) ? IpAddr::v4(10, 80, 1, host) : v6_on_link(1, host);
    }
}

IpAddr some_destination(Prng& random, bool is_v4) {
    switch (random.below(16)) {
        case 0:
            return is_v4 ? kUpAddress : kUpAddress6;
        case 1:
            return is_v4 ? kClusterAddress : kClusterAddress6;
        case 2:
            return is_v4 ? IpAddr::v4(203, 0, 113, 8) : *IpAddr::parse("2001:db8:77::8");
        case 3:
            return random.one_in(2) ? (is_v4 ? IpAddr::v4(224, 0, 0, 18) : *IpAddr::parse("ff02::5"))
                                    : (is_v4 ? IpAddr::v4(10, 80, 1, 255) : *IpAddr::parse("fe80::9"));
        default:
            return vips()[(is_v4 ? 0 : 2) + random.below(2)];
    }
}

worker::ExplainQuery some_query(Prng& random, const World& world, StoppedWorkers& workers) {
    worker::ExplainQuery query;
    query.receiver = {static_cast<uint8_t>(random.below(workers.count()))};
    query.tcp_not_syn = random.one_in(4);
    if (random.one_in(3)) {
        if (const auto [own, index] = workers.some_connection(random); own != nullptr) {
            const conn::Direction direction =
                random.one_in(2) ? conn::Direction::Forward : conn::Direction::Reverse;
            query.key = own->connections.at(index).key(direction);
            query.port = direction == conn::Direction::Forward ? kUp : kCluster;
            if (random.one_in(2)) {
                StoppedWorkers::change_state(random, *own, index);
            }
            return query;
        }
    }
    FlowKey& key = query.key;
    if (random.one_in(30)) {  // an endpoint that sends first, or late
        const TestService& service = one_of(random, world.services);
        const IpFamily family = random.one_in(2) ? IpFamily::V4 : IpFamily::V6;
        key = {backend_address(static_cast<uint8_t>(random.between(11, 13)), family),
               some_destination(random, family == IpFamily::V4),
               service.backend_port,
               40'000,
               service.protocol,
               {}};
        query.port = kCluster;
        return query;
    }
    key.source = some_source(random);
    key.source_port = random.one_in(10) ? L4Port{9'376} : static_cast<L4Port>(random.between(40'000, 40'002));
    const TestService& service = one_of(random, world.services);
    key.protocol = random.one_in(8) ? one_of<Protocol>(random, {Protocol::Tcp, Protocol::Udp, Protocol::Sctp})
                                    : service.protocol;
    std::vector<std::pair<IpAddr, L4Port>> frontends = service.frontends;
    frontends.insert(frontends.end(), service.local_frontends.begin(), service.local_frontends.end());
    for (const L4Port port : service.node_ports) {
        frontends.emplace_back(kUpAddress, port);
        frontends.emplace_back(kClusterAddress6, port);
    }
    std::erase_if(frontends,
                  [&](const auto& frontend) { return frontend.first.is_v4() != key.source.is_v4(); });
    if (!frontends.empty() && !random.one_in(5)) {
        std::tie(key.destination, key.destination_port) = one_of(random, frontends);
    } else {
        key.destination = some_destination(random, key.source.is_v4());
        key.destination_port = random.one_in(3) ? kNodePorts[random.below(2)] : kPorts[random.below(4)];
    }
    const bool is_inside = workers.inspect().arrival_port(key.source) == kCluster;
    query.port = is_inside != random.one_in(8) ? kCluster : kUp;
    return query;
}

bool has_step(const worker::Explanation& told, const std::string& stage) {
    return std::ranges::find(told.steps, stage, &worker::ExplainStep::stage) != told.steps.end();
}
std::string text_of_steps(const worker::Explanation& told) {
    std::string text;
    for (const worker::ExplainStep& step : told.steps) {
        text += "  " + step.stage + ": " + step.finding + "\n";
    }
    return text;
}

// Empty if explain and the pipeline agree.
std::string difference(const worker::Explanation& told, const Outcome& done) {
    const char* verdict = done.is_answer && done.verdict != Verdict::Drop ? "reject"
                          : done.verdict == Verdict::Transmit             ? "transmit"
                          : done.verdict == Verdict::Hold                 ? "hold"
                          : done.verdict == Verdict::Punt                 ? "punt"
                          : done.verdict == Verdict::Drop                 ? "drop"
                                                                          : "another verdict";
    // Documented: of the ports that may be reclaimed, the worker examines only some.
    if (done.verdict == Verdict::Drop && done.reason == DropReason::SnatPortsExhausted &&
        text_of_steps(told).find("some of the ports and drops the packet") != std::string::npos) {
        return "";
    }
    if (told.verdict != verdict) {
        return "verdict " + told.verdict + ", done: " + verdict +
               (done.verdict == Verdict::Drop ? " " + std::string(text_of(done.reason).counter) : "");
    }
    if (told.verdict == "reject") {
        return told.leaves_as ? "an answer does not leave as a flow" : "";
    }
    if (told.verdict == "drop") {
        return told.reason == done.reason
                   ? ""
                   : "reason " + std::string(told.reason ? text_of(*told.reason).counter : "none") +
                         ", done: " + std::string(text_of(done.reason).counter);
    }
    if (told.reason) {
        return "a reason without a drop";
    }
    const bool is_new = has_step(told, "snat");
    if (is_new != done.opened) {
        return std::string("explained as a packet of a ") + (is_new ? "new" : "known") + " flow";
    }
    if (told.verdict == "punt" && !told.leaves_as) {
        return "";
    }
    if (!told.leaves_as) {
        return "no tuple";
    }
    packet::Parsed after;
    if (!packet::parse(done.frame, after)) {
        return "the frame that leaves is malformed";
    }
    const std::string steps = text_of_steps(told);
    FlowKey expected = *told.leaves_as;
    if (steps.find("or another SNAT address") != std::string::npos) {
        expected.source = after.key.source;
    }
    if (expected.source_port == 0) {
        if (!is_new) {
            return "the source port of a known flow is known";
        }
        expected.source_port = after.key.source_port;
    }
    if (expected != after.key) {
        return "leaves as " + told.leaves_as->to_string() + ", done: " + after.key.to_string();
    }
    if (const bool is_told = steps.find("reclaimed from another connection") != std::string::npos;
        is_told != done.reclaimed) {
        return is_told ? "the port is not reclaimed" : "the port is reclaimed";
    }
    if (told.verdict == "punt") {
        const std::string twin = "through the twin of NicPort " + std::to_string(done.egress.value);
        return steps.find(twin) != std::string::npos ? "" : "done: " + twin;
    }
    if (told.egress != done.egress) {
        return "egress " + std::to_string(told.egress.value) + ", done: " + std::to_string(done.egress.value);
    }
    if (told.verdict == "hold") {
        return told.next_hop == done.next_hop && !told.next_hop_mac
                   ? ""
                   : "next hop, done: " + done.next_hop.to_string();
    }
    return told.next_hop_mac == load<MacAddr>(done.frame.data()) ? "" : "the next hop's MAC address";
}

void count(Counts& counts, const worker::ExplainQuery& query, const worker::Explanation& told,
           const Outcome& done) {
    const FlowKey& key = query.key;
    const std::string steps = text_of_steps(told);
    const auto says = [&](const char* words) { return steps.find(words) != std::string::npos; };
    const std::string protocol = key.protocol == Protocol::Tcp   ? (query.tcp_not_syn ? "tcp ack" : "tcp syn")
                                 : key.protocol == Protocol::Udp ? "udp"
                                                                 : "sctp init";
    const std::string family = key.source.is_v4() ? "ipv4" : "ipv6";
    const std::string kind = has_step(told, "connection") && says("direction of a connection")
                                 ? (says("forward direction") ? "known, forward" : "known, reverse")
                             : has_step(told, "connection") ? "new"
                                                            : "before the connections";
    counts.add("packet " + protocol + ", " + family + ", " + kind);
    counts.add("verdict " + told.verdict + ", " + kind);
    if (told.reason) {
        counts.add("reason " + std::string(text_of(*told.reason).counter));
    }
    const auto note = [&](const char* name, bool applies) {
        if (applies) {
            counts.add(name);
        }
    };
    note("to the other family, new", done.opened && has_step(told, "convert"));
    note("to the other family, known", !done.opened && has_step(told, "convert"));
    note("to a NodePort",
         done.opened && (key.destination == kUpAddress || key.destination == kClusterAddress6));
    note("source kept", done.opened && says("keeps the client's address and port"));
    note("source translated", done.opened && says("the source becomes"));
    note("hairpin", done.opened && told.leaves_as && told.leaves_as->destination == key.source);
    note("port reclaimed", done.reclaimed);
    note("former source", done.opened && says("which the finished connection had"));
    note("own port for an endpoint on the host", done.opened && says("the source port becomes one of"));
    note("pinned by affinity", done.opened && says("pinned to "));
    note("first of its affinity", done.opened && says("none: the client will be pinned"));
    note("set for inside clients", done.opened && says("is inside the cluster"));
    note("picked up in mid-stream", done.opened && says("picked up as a mid-stream"));
    note("endpoint on the host", done.opened && told.verdict == "punt");
    note("kept tuple is taken", done.opened && says("already have a flow to"));
    note("reopened", done.opened && says("in its place"));
    note("answered for a flow under reset", says("is answered by RSTs"));
    note("by a gateway", told.next_hop && told.leaves_as && *told.next_hop != told.leaves_as->destination);
    note("to another worker", says("the packet is handed to it"));
}

// What must have been compared, each at least once. Each is drawn dozens of times.
std::vector<std::string> required_kinds() {
    std::vector<std::string> kinds{"to the other family, new",
                                   "to the other family, known",
                                   "to a NodePort",
                                   "source kept",
                                   "source translated",
                                   "hairpin",
                                   "port reclaimed",
                                   "former source",
                                   "pinned by affinity",
                                   "first of its affinity",
                                   "set for inside clients",
                                   "picked up in mid-stream",
                                   "endpoint on the host",
                                   "own port for an endpoint on the host",
                                   "kept tuple is taken",
                                   "reopened",
                                   "answered for a flow under reset",
                                   "by a gateway",
                                   "to another worker",
                                   "ttl 1",
                                   "options that pass",
                                   "options that are dropped"};
    for (const char* protocol : {"tcp syn", "tcp ack", "udp", "sctp init"}) {
        for (const char* family : {"ipv4", "ipv6"}) {
            for (const char* kind : {"new", "known, forward", "known, reverse", "before the connections"}) {
                kinds.push_back("packet " + std::string(protocol) + ", " + family + ", " + kind);
            }
        }
    }
    for (const char* verdict : {"transmit", "hold", "punt", "reject", "drop"}) {
        for (const char* kind : {"new", "known, forward"}) {
            kinds.push_back("verdict " + std::string(verdict) + ", " + kind);
        }
    }
    for (const DropReason reason :
         {DropReason::MartianSource, DropReason::SourceBlocked, DropReason::VipPortClosed,
          DropReason::SourceNotAllowed, DropReason::NoEndpoint, DropReason::NoLocalEndpoint,
          DropReason::ReversePath, DropReason::StrayReply, DropReason::InvalidTcpFlags,
          DropReason::SctpNoAssociation, DropReason::RejectNotAllowed, DropReason::SnatPortsExhausted,
          DropReason::NoSnatAddress, DropReason::NoRoute}) {
        kinds.push_back("reason " + std::string(text_of(reason).counter));
    }
    return kinds;
}

// Fills the few SNAT ports of the world with flows of one client, established or half-open.
void use_up_ports(Prng& random, const World& world, StoppedWorkers& workers) {
    if (world.services[0].frontends.empty()) {
        return;
    }
    const auto& [vip, port] = world.services[0].frontends[0];
    for (L4Port client = 1'000; client < 1'600; ++client) {
        worker::ExplainQuery query;
        query.key = {vip.is_v4() ? kClient : kClient6, vip, client, port, world.services[0].protocol, {}};
        workers.run(frame_of(random, query), kUp, {static_cast<uint8_t>(client % workers.count())});
    }
    if (random.one_in(2)) {
        workers.establish_all();
    }
}

// explain describes a packet with a TTL above 1 and without IP options, and says so. With TTL 1 the pipeline
// drops or answers what explain would send on. Options that are dropped are dropped before the connections.
std::string difference_with(Extra extra, const worker::ExplainQuery& query, const worker::Explanation& told,
                            const Outcome& done, bool options_pass) {
    if (extra == Extra::Options && options_pass) {
        return difference(told, done);
    }
    if (has_step(told, "connection") &&
        text_of_steps(told).find("assumed: TTL above 1, no IP options") == std::string::npos) {
        return "the assumption is missing";
    }
    if (extra == Extra::Options) {
        const bool is_judged_before =
            told.reason == DropReason::MartianSource || query.key.destination.is_multicast();
        return is_judged_before || (done.verdict == Verdict::Drop && done.reason == DropReason::IpOptions)
                   ? ""
                   : "the options pass";
    }
    // Without a route to the sender, the answer (ICMP time exceeded) is dropped.
    const bool expires =
        done.is_answer || (done.verdict == Verdict::Drop &&
                           (done.reason == DropReason::TtlExpired || done.reason == DropReason::NoRoute));
    const bool is_sent_on = told.leaves_as && told.verdict != "drop";
    return is_sent_on && !expires ? "TTL 1 does not expire" : "";
}

TEST(Explain, AgreesWithThePipeline) {
    if (kUnderThreadSanitizer) {
        GTEST_SKIP() << "DPDK's lcores synchronise by barriers that TSan cannot see";
    }
    ASSERT_TRUE(start_eal());
    Prng random;
    Counts counts;
    for (const uint32_t worker_count : {1U, 2U, 4U}) {
        VirtualGateway gateway;
        StoppedWorkers workers(worker_count);
        for (uint32_t w = 0; w < kWorlds; ++w) {
            if (!random.one_in(3)) {
                workers.close_all();
            }
            const World world = some_world(random, gateway);
            workers.publish(world.snapshot);
            if (Prng of_flows(random.next()); world.is_narrow) {
                use_up_ports(of_flows, world, workers);
            }
            for (uint32_t p = 0; p < kPacketsPerWorld; ++p) {
                Prng of_packet(random.next());  // each packet draws as much as it needs
                const worker::ExplainQuery query = some_query(of_packet, world, workers);
                const bool has_extra = of_packet.one_in(12);
                const Extra extra = !has_extra                                        ? Extra::None
                                    : query.key.source.is_v4() && of_packet.one_in(2) ? Extra::Options
                                                                                      : Extra::TtlOne;
                const worker::Explanation told = workers.inspect().explain(query);
                const Outcome done =
                    workers.run(frame_of(of_packet, query, extra), query.port, query.receiver);
                const bool options_pass = world.snapshot.packets.passes_ip_options;
                ASSERT_EQ(extra == Extra::None ? difference(told, done)
                                               : difference_with(extra, query, told, done, options_pass),
                          "")
                    << worker_count << " workers, world " << w << ", packet " << p << ": "
                    << query.key.to_string() << (query.tcp_not_syn ? ", not SYN" : "")
                    << (extra == Extra::TtlOne ? ", TTL 1" : "")
                    << (extra == Extra::Options ? ", options" : "") << ", on NicPort "
                    << int{query.port.value} << "\n"
                    << text_of_steps(told) << "  verdict: " << told.verdict;
                if (extra == Extra::None) {
                    count(counts, query, told, done);
                } else {
                    counts.add(extra == Extra::TtlOne ? "ttl 1"
                               : options_pass         ? "options that pass"
                                                      : "options that are dropped");
                }
            }
        }
    }
    for (const std::string& kind : required_kinds()) {
        EXPECT_GT(counts.of(kind), 0U) << kind;
    }
    std::cout << counts.to_string();
}

}  // namespace explain_property_test
}  // namespace penstock::test
