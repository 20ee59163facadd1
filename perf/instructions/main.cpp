// SPDX-License-Identifier: Apache-2.0
// Runs every stage and the rooms' hot calls on fixed traffic, so that callgrind can count their instructions
// (scripts/bench instructions). The program does not depend on time, on addresses in memory or on random
// numbers: the same build has the same counts everywhere.
//
//   pipeline   run_stages on whole bursts; report.py splits it by the functions that run_stages calls
//   rooms      one call each, in a loop over keys of a table as full as it may get
#include <span>
#include <string>

#include "dataplane/lb/scheduler.hpp"
#include "perf/instructions/rooms.hpp"
#include "perf/instructions/world.hpp"
#include "tests/support/prng.hpp"

namespace penstock::perf {
namespace {

constexpr uint32_t kConnections = 16'384;
constexpr uint32_t kEstablished = 1'024;
constexpr uint32_t kPackets = 16'384;
constexpr uint32_t kNewFlows = 4'096;

std::string name_of(IpFamily family) {
    return family == IpFamily::V4 ? "ipv4" : "ipv6";
}

void count_established(World& world, IpFamily family, Protocol protocol) {
    std::vector<Frame> frames;
    for (uint32_t n = 0; n < kEstablished; ++n) {
        const packet::FlowKey forward = client_flow(family, protocol, n);
        const packet::FlowKey reverse = world.open(forward);
        frames.push_back(make_frame(forward, test::kUp, kAck));
        frames.push_back(make_frame(reverse, test::kCluster, kAck));
    }
    std::vector<Frame> order;
    test::Prng prng(1);
    for (uint32_t n = 0; n < kPackets; ++n) {
        order.push_back(frames[prng.below(frames.size())]);
    }
    InstructionCount count("pipeline." + name_of(family) +
                           (protocol == Protocol::Tcp ? ".tcp.established" : ".udp.established"));
    world.send(order, &count);
    count.report(kPackets, "packet");
}

void count_new(World& world, IpFamily family) {
    std::vector<Frame> frames;
    for (uint32_t n = 0; n < kNewFlows; ++n) {
        frames.push_back(make_frame(client_flow(family, Protocol::Tcp, kEstablished + n), test::kUp, kSyn));
    }
    InstructionCount count("pipeline." + name_of(family) + ".tcp.new");
    world.send(frames, &count);
    count.report(kNewFlows, "packet");
}

}  // namespace
}  // namespace penstock::perf

int main() {
    using namespace penstock;
    for (const IpFamily family : {IpFamily::V4, IpFamily::V6}) {
        perf::World world(perf::kConnections);
        perf::count_established(world, family, Protocol::Tcp);
        perf::count_established(world, family, Protocol::Udp);
        perf::count_new(world, family);
        perf::count_rooms(family, world.snapshot());
    }
}
