// SPDX-License-Identifier: Apache-2.0
// Random damage to the tables that a former process left: connection tables and affinity table, headers and
// entries. Adoption ends, and reads nothing beyond the memory. Every adopted connection has a frontend of the
// current configuration, an endpoint of its Service, and a SNAT address and port of the configuration or the
// client's own address. The counts follow from the connections, and everything is released in the end.
//
// An input is a number of changes of five bytes: which table (1), where (2), how (1), with what (1). One in
// two positions is in the entries that are used. The first byte selects the heir, and whether the tables have
// a layout of their own. The description of that layout may be damaged as well.
#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "dataplane/base/check.hpp"
#include "dataplane/conn/table_layout.hpp"
#include "dataplane/pipeline/state/context.hpp"
#include "tests/support/aligned_memory.hpp"
#include "tests/support/other_layout.hpp"
#include "tests/support/packet_builder.hpp"
#include "tests/support/virtual_gateway.hpp"

namespace penstock::test {
namespace {

using conn::Direction;

constexpr uint32_t kConnections = 64, kWorkers = 2;
const IpAddr kVip = IpAddr::v4(80, 11, 12, 10);
const IpAddr kVip6 = *IpAddr::parse("2001:db8:80::10");

std::vector<TestService> services() {
    std::vector<TestService> all;
    L4Port port = 80;
    for (const Protocol protocol : {Protocol::Tcp, Protocol::Udp, Protocol::Sctp}) {
        for (const lb::SourceMode source : {lb::SourceMode::Translate, lb::SourceMode::Keep}) {
            all.push_back({.name = std::string(to_string(protocol)) + to_string(source),
                           .protocol = protocol,
                           .frontends = {{kVip, port}, {kVip6, port}},
                           .backends = {11, 12, 13},
                           .source = source,
                           .affinity_timeout_s = 600});
            ++port;
        }
    }
    all[1].source = lb::SourceMode::Translate;
    all[1].endpoints_of = IpFamily::V4;  // mixed connections
    return all;
}

VirtualGateway::Options options(uint32_t workers, uint32_t connections) {
    return {.workers = workers,
            .connections = connections,
            .affinity_entries = 64,
            .services = 8,
            .backends = 64,
            .secrets_from = 1};
}

void open_flow(VirtualGateway& gateway, const TestService& service, const IpAddr& vip, L4Port vip_port,
               uint32_t n) {
    const L4Port port = static_cast<L4Port>(20'000 + n);
    PacketBuilder builder = eth();
    builder.from_mac(kClientMac.to_string()).to_mac(kUpMac.to_string());
    vip.is_v4() ? builder.ipv4("198.51.100.7", vip.to_string())
                : builder.ipv6("2001:db8:1::7", vip.to_string());
    switch (service.protocol) {
        case Protocol::Tcp:
            builder.tcp(port, vip_port, "S");
            break;
        case Protocol::Udp:
            builder.udp(port, vip_port);
            break;
        case Protocol::Sctp:
            builder.sctp(port, vip_port, 0).sctp_init(7);
            break;
    }
    const Outcome outcome = gateway.send(builder.build(), kUp, {static_cast<uint8_t>(n % kWorkers)});
    PENSTOCK_CHECK(outcome.verdict == Verdict::Transmit);
}

// What is left, and heirs of one and of three workers, built once.
struct World {
    World() : former(options(kWorkers, kConnections)) {
        const std::vector<TestService> all = services();
        former.publish(all);
        uint32_t n = 0;
        for (uint32_t round = 0; round < 3; ++round) {
            for (const TestService& service : all) {
                for (const auto& [vip, port] : service.frontends) {
                    open_flow(former, service, vip, port, n++);
                }
            }
        }
        for (const auto& [workers, connections] : {std::pair{1U, 128U}, std::pair{3U, 16U}}) {
            heirs.push_back(std::make_unique<VirtualGateway>(options(workers, connections)));
            std::vector<TestService> renumbered = all;
            std::ranges::reverse(renumbered);
            heirs.back()->publish(renumbered);
            heirs.back()->remember();
        }
        Prng random(1);
        layout = random_layout(random, own);
        const adopt::FormerTables left = former.left_to(*heirs.front());
        for (const std::span<const std::byte>& table : left.connections) {
            converted.push_back(in_layout(table, own, layout, random));
        }
    }
    VirtualGateway former;
    const conn::TableDescription own = conn::describe_tables(kConnections);
    conn::TableDescription layout;
    std::vector<AlignedMemory> converted;  // the tables of `former` in this layout
    std::vector<std::unique_ptr<VirtualGateway>> heirs;
};

// `units`: where the entries are; null: none are.
void damage(std::span<std::byte> memory, const conn::TableDescription* units, const uint8_t* change) {
    size_t at = static_cast<size_t>(change[1] | change[2] << 8);
    if (units != nullptr && (change[0] & 1) != 0) {
        at = units->units_at + at % (48U * units->unit_bytes);
    }
    std::byte& byte = memory[at % memory.size()];
    switch (change[3] % 4) {
        case 0:
            byte ^= std::byte{1} << (change[4] % 8);
            break;
        case 1:
            byte = std::byte{change[4]};
            break;
        case 2: {  // a cache line of another place
            const size_t lines = memory.size() / kCacheLine;
            std::memmove(memory.data() + at % memory.size() / kCacheLine * kCacheLine,
                         memory.data() + (change[4] * 37U) % lines * kCacheLine, kCacheLine);
            break;
        }
        default:
            std::memset(memory.data() + at % memory.size() / kCacheLine * kCacheLine, change[4], kCacheLine);
    }
}

// The sets of this Service have the backend.
bool has_endpoint(const lb::Service& service, BackendId id, const IpAddr& address, L4Port port) {
    return std::ranges::any_of(service.sets, [&](const lb::BackendSet& set) {
        return std::ranges::any_of(set.usable, [&](const lb::Backend& backend) {
            return backend.id == id && backend.address == address && backend.port == port;
        });
    });
}

void check(VirtualGateway& heir) {
    const config::Snapshot& snapshot = heir.snapshot();
    for (uint32_t w = 0; w < heir.options().workers; ++w) {
        pipeline::WorkerContext& ctx = heir.worker(w);
        uint32_t ports = 0, live = 0;
        for (uint32_t unit = 0; unit < ctx.connections.high_water(); ++unit) {
            if (!ctx.connections.is_live(unit)) {
                continue;
            }
            ++live;
            const conn::Connection connection = ctx.connections.connection({unit});
            const packet::FlowKey& forward = connection.forward;
            const packet::FlowKey& reverse = connection.reverse;
            const lb::FrontendRow* frontend =
                snapshot.services->find(forward.destination, forward.destination_port, forward.protocol);
            PENSTOCK_CHECK(frontend != nullptr && frontend->service->id == connection.service);
            PENSTOCK_CHECK(forward.protocol == reverse.protocol);
            PENSTOCK_CHECK(
                has_endpoint(*frontend->service, connection.backend, reverse.source, reverse.source_port));
            if (connection.source_kept) {
                PENSTOCK_CHECK(reverse.destination == forward.source);
            } else {
                ++ports;
                PENSTOCK_CHECK(snapshot.snat->addresses.contains(reverse.destination));
                PENSTOCK_CHECK(reverse.destination_port >= snapshot.snat->ports.first);
            }
            for (const packet::FlowKey& key : {forward, reverse}) {
                PENSTOCK_CHECK(ctx.connections.find(key, ctx.connections.hash(key)).index ==
                               ConnectionIndex{unit});
            }
        }
        PENSTOCK_CHECK(ctx.connections.size() == live && ctx.snat_ports.in_use() == ports);
        PENSTOCK_CHECK(ctx.count()[stats::Counter::AdoptedConnections].read() == live);
    }
    heir.affinity().for_each([&](const lb::AffinityEntry& entry) {
        bool is_known = false;
        snapshot.services->for_each_row([&](const lb::FrontendRow& row) {
            for (const lb::BackendSet& set : row.service->sets) {
                is_known |= row.service->affinity_owner == entry.key.owner &&
                            set.positions.find(entry.endpoint) != lb::EndpointPositions::kNone;
            }
        });
        PENSTOCK_CHECK(is_known);
        return true;
    });
    for (int times = 0; times < 4 && heir.connections() > 0; ++times) {
        heir.advance_seconds(100'000);
        heir.age();
        heir.take_own_segments();
    }
    PENSTOCK_CHECK(heir.connections() == 0);
    for (uint32_t w = 0; w < heir.options().workers; ++w) {
        PENSTOCK_CHECK(heir.worker(w).snat_ports.in_use() == 0);
        for (uint32_t backend = 0; backend < heir.options().backends; ++backend) {
            PENSTOCK_CHECK(heir.worker(w).counters.backends[backend].open.read() == 0);
        }
    }
}

}  // namespace
}  // namespace penstock::test

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace penstock;
    using namespace penstock::test;
    static World world;
    if (size == 0) {
        return 0;
    }
    VirtualGateway& heir = *world.heirs[data[0] & 1];
    heir.forget();
    adopt::FormerTables left = world.former.left_to(heir);
    if ((data[0] & 2) != 0) {
        left.services.reset();
    }
    // Exactly as long as the memory, so that the address sanitizer sees an access beyond it.
    std::vector<AlignedMemory> memory;
    const auto copy = [&](std::span<const std::byte>& table) {
        const AlignedMemory& own = memory.emplace_back(table.size());
        std::memcpy(own.span().data(), table.data(), table.size());
        table = own.span();
    };
    const bool is_converted = (data[0] & 4) != 0;
    const conn::TableDescription& layout = is_converted ? world.layout : world.own;
    conn::TableDescription described = layout;
    if (is_converted) {
        for (uint32_t worker = 0; worker < kWorkers; ++worker) {
            left.connections[worker] = world.converted[worker].span();
        }
    }
    std::ranges::for_each(left.connections, copy);
    copy(left.affinity);
    for (size_t at = 1; at + 5 <= size && at < 200; at += 5) {
        const size_t which = data[at] >> 1 & 3;
        const size_t table = which < kWorkers ? which : kWorkers;
        if (is_converted && (data[at] & 8) != 0) {
            reinterpret_cast<uint8_t*>(&described)[(data[at + 1] | data[at + 2] << 8) % sizeof(described)] ^=
                data[at + 4];
            continue;
        }
        damage(memory[table].span(), table < kWorkers ? &layout : nullptr, data + at);
    }
    if (is_converted) {
        left.layout = described;
    }
    const adopt::Report report = heir.adopt(left, world.former);
    PENSTOCK_CHECK(size >= 6 || (data[0] & 1) != 0 || (report.all_adopted() == 36 && report.all_lost() == 0));
    check(heir);
    return 0;
}
