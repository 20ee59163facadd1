// SPDX-License-Identifier: Apache-2.0
#include "perf/instructions/world.hpp"

#include <cstring>

#include "dataplane/base/check.hpp"
#include "dataplane/packet/checksum.hpp"
#include "dataplane/packet/parse.hpp"
#include "dataplane/packet/wire.hpp"
#include "dataplane/pipeline/counted_stages.hpp"
#include "dataplane/pipeline/stages.hpp"
#include "dataplane/shares/strays.hpp"

namespace penstock::perf {
namespace {

constexpr uint32_t kServices = 32;  // of each family and protocol
constexpr uint32_t kFrontendsPerService = 8;
constexpr uint32_t kBackends = 16;
constexpr uint32_t kRoutes = 256;
constexpr uint16_t kPayloadBytes = 6;  // pads an IPv4 TCP frame to Ethernet's 60 bytes

IpAddr address(IpFamily family, uint8_t network, uint16_t host) {
    const auto low = static_cast<uint8_t>(host);
    const auto high = static_cast<uint8_t>(host >> 8);
    if (family == IpFamily::V4) {
        return IpAddr::v4(10, static_cast<uint8_t>(80 + high), network, low);
    }
    return IpAddr::v6({0xfd, 0, 0, 0x80, 0, network, 0, 0, 0, 0, 0, 0, 0, 0, high, low});
}
IpAddr client_address(IpFamily family) {
    return address(family, 1, 2);
}
IpAddr vip(IpFamily family, uint32_t n) {
    return address(family, 200, static_cast<uint16_t>(n));
}

constexpr IpFamily kFamilies[] = {IpFamily::V4, IpFamily::V6};
constexpr Protocol kProtocols[] = {Protocol::Tcp, Protocol::Udp};

std::shared_ptr<const shares::Strays> make_strays() {
    constexpr uint8_t kShares = 16;
    std::vector<Prefix> vips;
    for (const IpFamily family : kFamilies) {
        vips.push_back(*Prefix::make(address(family, 200, 0), family == IpFamily::V4 ? 24 : 112));
    }
    return std::make_shared<shares::Strays>(
        shares::Strays::Parts{.map = shares::ShareMap(kShares, {}, {std::move(vips), 1}),
                              .shares = {kShares, {.primary = 0, .heir = 1}},
                              .gateways = {{"edge-1", IpAddr::v4(10, 80, 2, 1), true},
                                           {"edge-2", IpAddr::v4(10, 80, 2, 250), true}},
                              .self = 0,
                              .snat = {}});
}

}  // namespace

Frame make_frame(const packet::FlowKey& key, NicPortId port, packet::TcpFlags flags) {
    const bool is_tcp = key.protocol == Protocol::Tcp;
    const bool is_v4 = key.source.is_v4();
    const auto l4_bytes = static_cast<uint16_t>(
        (is_tcp ? sizeof(packet::TcpHeader) : sizeof(packet::UdpHeader)) + kPayloadBytes);
    const size_t l3_bytes = is_v4 ? sizeof(packet::Ipv4Header) : sizeof(packet::Ipv6Header);
    Frame frame{std::vector<uint8_t>(sizeof(packet::EthernetHeader) + l3_bytes + l4_bytes), port};
    uint8_t* at = frame.bytes.data();

    const bool up = port == test::kUp;
    store(at, packet::EthernetHeader{
                  up ? test::kUpMac : test::kClusterMac, up ? test::kClientMac : test::backend_mac(11),
                  Be16::from_host(is_v4 ? packet::kEtherTypeIpv4 : packet::kEtherTypeIpv6)});
    at += sizeof(packet::EthernetHeader);
    if (is_v4) {
        packet::Ipv4Header ip;
        ip.total_length = Be16::from_host(static_cast<uint16_t>(l3_bytes + l4_bytes));
        ip.ttl = 64;
        ip.protocol = static_cast<uint8_t>(key.protocol);
        ip.source = key.source.v4_wire();
        ip.destination = key.destination.v4_wire();
        store(at, ip);
        ip.checksum = packet::ChecksumSum().add(ByteView(at, sizeof ip)).checksum();
        store(at, ip);
    } else {
        packet::Ipv6Header ip;
        ip.payload_length = Be16::from_host(l4_bytes);
        ip.next_header = static_cast<uint8_t>(key.protocol);
        ip.hop_limit = 64;
        ip.source = key.source.bytes();
        ip.destination = key.destination.bytes();
        store(at, ip);
    }
    at += l3_bytes;
    const Be16 source = Be16::from_host(key.source_port);
    const Be16 destination = Be16::from_host(key.destination_port);
    const Be16 checksum = Be16::from_host(0x1234);
    if (is_tcp) {
        packet::TcpHeader tcp;
        tcp.source_port = source;
        tcp.destination_port = destination;
        tcp.seq = Be32::from_host(
            // the next number is 0, which is acknowledged
            flags.has(packet::TcpFlags::kSyn) ? 0xffff'ffff : 0);
        tcp.flags = flags.bits;
        tcp.checksum = checksum;
        store(at, tcp);
    } else {
        store(at, packet::UdpHeader{source, destination, Be16::from_host(l4_bytes), checksum});
    }
    return frame;
}

packet::FlowKey client_flow(IpFamily family, Protocol protocol, uint32_t n) {
    packet::FlowKey key;
    // A client has 32,768 sockets here; the next client is behind the same router.
    key.source = address(family, 100, static_cast<uint16_t>(2 + n / 32'768));
    key.source_port = static_cast<L4Port>(1'024 + n % 32'768);
    key.destination = vip(family, n % kServices);
    key.destination_port = static_cast<L4Port>(80 + n / kServices % kFrontendsPerService);
    key.protocol = protocol;
    return key;
}

config::Snapshot make_snapshot() {
    std::vector<lb::Frontend> frontends;
    std::vector<std::shared_ptr<const lb::Service>> services;
    std::vector<route::Route> routes;
    std::vector<route::Neighbour> neighbours;
    std::vector<route::LocalAddress> locals;
    auto snat = std::make_shared<nat::SnatConfig>();
    uint32_t neighbour_id = 0;
    for (const IpFamily family : kFamilies) {
        const uint8_t link_bits = family == IpFamily::V4 ? 24 : 96;
        const auto network = [&](uint8_t number, uint16_t host, uint8_t bits) {
            return *Prefix::make(address(family, number, host), bits);
        };
        routes.push_back({network(1, 0, link_bits), test::kUp, {}, 0});
        routes.push_back({network(2, 0, link_bits), test::kCluster, {}, 0});
        routes.push_back({*Prefix::parse(family == IpFamily::V4 ? "0.0.0.0/0" : "::/0"), test::kUp,
                          client_address(family), 100});
        for (uint16_t n = 0; n < kRoutes; ++n) {
            routes.push_back({network(150, static_cast<uint16_t>(n * 2), family == IpFamily::V4 ? 32 : 128),
                              test::kUp, client_address(family), 0});
        }
        for (const auto& [port, number] :
             {std::pair{test::kUp, uint8_t{1}}, std::pair{test::kCluster, uint8_t{2}}}) {
            locals.push_back({port, address(family, number, 1), link_bits});
            snat->addresses.push_back({address(family, number, 1), port, false});
        }
        neighbours.push_back({{neighbour_id++},
                              test::kUp,
                              client_address(family),
                              test::kClientMac,
                              route::NeighbourState::Reachable});
        std::vector<lb::Backend> backends;
        for (uint32_t b = 0; b < kBackends; ++b) {
            const auto host = static_cast<uint8_t>(11 + b);
            neighbours.push_back({{neighbour_id++},
                                  test::kCluster,
                                  address(family, 2, host),
                                  test::backend_mac(host),
                                  route::NeighbourState::Reachable});
        }
        for (const Protocol protocol : kProtocols) {
            for (uint32_t s = 0; s < kServices; ++s) {
                auto service = std::make_shared<lb::Service>();
                // The Services of both families and protocols share counter rows, because VirtualGateway has
                // 64.
                service->id = {s};
                service->namespace_name = "default";
                service->name = "web-" + std::to_string(s);
                service->protocol = protocol;
                service->scheduler = s % 2 == 0 ? lb::SchedulerKind::RoundRobin : lb::SchedulerKind::Maglev;
                lb::BackendSet set;
                for (uint32_t b = 0; b < kBackends; ++b) {
                    set.usable.push_back(
                        {{s * kBackends + b}, address(family, 2, static_cast<uint8_t>(11 + b)), 8'080, 1});
                }
                lb::prepare(set, service->scheduler);
                service->sets.push_back(std::move(set));
                for (uint32_t f = 0; f < kFrontendsPerService; ++f) {
                    frontends.push_back({vip(family, s), static_cast<L4Port>(80 + f), protocol,
                                         lb::FrontendClass::LoadBalancerIp, 0, service, nullptr});
                }
                services.push_back(std::move(service));
            }
        }
    }
    config::Snapshot snapshot;
    snapshot.generation = 1;
    auto table = lb::ServiceTable::build(std::move(frontends), std::move(services));
    PENSTOCK_CHECK(table);
    snapshot.services = *table;
    snapshot.routes = route::RouteTable::build(
        std::move(routes), std::move(neighbours), std::move(locals),
        {{test::kUp, test::kUpMac, 1'500, true}, {test::kCluster, test::kClusterMac, 1'500, true}});
    snapshot.snat = snat;
    return snapshot;
}

World::World(uint32_t connections, const Features& features)
    : gateway_([&] {
          test::VirtualGateway::Options options;
          options.connections = connections;
          options.latencies = features.measures_latencies;
          options.workers = features.workers;
          options.flow_stays_on_queue = features.workers > 1;
          return options;
      }()) {
    if (features.forwards_strays) {
        snapshot_.strays = make_strays();
    }
}

void World::fill(std::span<const Frame> frames, uint32_t worker) {
    burst_.count = 0;
    burst_.looks_first = gateway_.options().flow_stays_on_queue;
    for (const Frame& frame : frames) {
        uint8_t* buffer = buffers_.data() + size_t{burst_.count} * kBufferBytes;
        std::memcpy(buffer, frame.bytes.data(), frame.bytes.size());
        burst_.add(nullptr, buffer, static_cast<uint16_t>(frame.bytes.size()), kBufferBytes,
                   {frame.port, {.receiver = {static_cast<uint8_t>(worker)}}});
    }
    gateway_.worker(worker).begin_round(&snapshot_, now_);
}

void World::check_sent(const pipeline::Burst& burst) const {
    for (uint32_t i = 0; i < burst.count; ++i) {
        if (burst.verdict[i] != Verdict::Transmit) {
            std::fprintf(stderr, "instructions: a packet was not forwarded: %s, verdict %u, reason %u\n",
                         burst.parsed[i].key.to_string().c_str(), static_cast<unsigned>(burst.verdict[i]),
                         burst.verdict[i] == Verdict::Drop ? static_cast<unsigned>(burst.reason[i]) : 0);
            std::exit(1);
        }
    }
}

void World::send(std::span<const Frame> frames, InstructionCount* count) {
    const pipeline::RunStages run_stages = pipeline::stages_of(context());
    for (size_t first = 0; first < frames.size(); first += limits::kBurstMax) {
        fill(frames.subspan(first, std::min<size_t>(limits::kBurstMax, frames.size() - first)));
        if (count != nullptr) {
            count->run([&] { run_stages(context(), burst_); });
        } else {
            run_stages(context(), burst_);
        }
        check_sent(burst_);
    }
}

void World::send_misplaced(std::span<const Frame> frames, InstructionCount& count) {
    pipeline::WorkerContext& receiver = gateway_.worker(1);
    for (size_t first = 0; first < frames.size(); first += limits::kBurstMax) {
        fill(frames.subspan(first, std::min<size_t>(limits::kBurstMax, frames.size() - first)), 1);
        count.run([&] { pipeline::run_stages(receiver, burst_); });
        handed_.count = 0;
        handed_.looks_first = true;
        handed_.was_handed = true;
        for (uint32_t i = 0; i < burst_.count; ++i) {
            PENSTOCK_CHECK(burst_.verdict[i] == Verdict::Handoff && burst_.handoff_to[i] == WorkerId{0});
            pipeline::Arrival how = burst_.arrival[i];
            how.note = how.note.crossing();
            handed_.add(nullptr, burst_.data[i], burst_.length[i], burst_.capacity[i], how);
        }
        context().begin_round(&snapshot_, now_);
        count.run([&] { pipeline::run_stages(context(), handed_); });
        check_sent(handed_);
    }
}

void World::send_captured(std::span<const Frame> frames, pipeline::Tap& tap, InstructionCount& count) {
    for (size_t first = 0; first < frames.size(); first += limits::kBurstMax) {
        fill(frames.subspan(first, std::min<size_t>(limits::kBurstMax, frames.size() - first)));
        count.run([&] { tap.arrived(burst_); });
        pipeline::run_stages(context(), burst_);
        count.run([&] {
            tap.decided(context(), burst_);
            tap.disposed();
        });
        tap.ring().read(~0U, [](const capture::Record&, std::span<const uint8_t>) {});
    }
}

packet::FlowKey World::open(const packet::FlowKey& forward) {
    const bool is_tcp = forward.protocol == Protocol::Tcp;
    const Frame first = make_frame(forward, test::kUp, kSyn);
    send({&first, 1});
    // The forwarded frame contains the translation.
    packet::Parsed left;
    PENSTOCK_CHECK(packet::parse(ByteView(burst_.data[0], burst_.length[0]), left));
    const packet::FlowKey reverse = left.key.reversed();
    const Frame answer = make_frame(reverse, test::kCluster, kSynAck);
    send({&answer, 1});
    if (is_tcp) {
        const Frame last = make_frame(forward, test::kUp, kAck);
        send({&last, 1});
    }
    return reverse;
}

}  // namespace penstock::perf
