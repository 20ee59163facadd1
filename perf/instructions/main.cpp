// SPDX-License-Identifier: Apache-2.0
// Runs every stage and the rooms' hot calls on fixed traffic, so that callgrind can count their instructions
// (scripts/bench instructions). The program does not depend on time, on addresses in memory or on random
// numbers: the same build has the same counts everywhere.
//
//   pipeline   run_stages on whole bursts; report.py splits it by the functions that run_stages calls
//   rooms      one call each, in a loop over keys of a table as full as it may get
//   capture    the cost that a packet capture adds to an established packet
//   latency    whole bursts while latencies are measured
//   shares     whole bursts of a gateway with shares that forwards strays
//   handed_off whole bursts of replies on two workers: that of the receiver, and that of the owner
#include <span>
#include <string>
#include <vector>

#include "dataplane/base/check.hpp"
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

// Programs of libpcap (tcpdump -dd).
using Instructions = std::vector<capture::Instruction>;
const Instructions kHost4{// host 192.0.2.1
                          {0x28, 0, 0, 12},         {0x15, 0, 4, 0x800},  {0x20, 0, 0, 26},
                          {0x15, 8, 0, 0xc0000201}, {0x20, 0, 0, 30},     {0x15, 6, 7, 0xc0000201},
                          {0x15, 1, 0, 0x806},      {0x15, 0, 5, 0x8035}, {0x20, 0, 0, 28},
                          {0x15, 2, 0, 0xc0000201}, {0x20, 0, 0, 38},     {0x15, 0, 1, 0xc0000201},
                          {0x06, 0, 0, 1},          {0x06, 0, 0, 0}};
const Instructions kHost6{// host 2001:db8::1
                          {0x28, 0, 0, 12}, {0x15, 0, 17, 0x86dd}, {0x20, 0, 0, 22}, {0x15, 0, 6, 0x20010db8},
                          {0x20, 0, 0, 26}, {0x15, 0, 4, 0},       {0x20, 0, 0, 30}, {0x15, 0, 2, 0},
                          {0x20, 0, 0, 34}, {0x15, 8, 0, 1},       {0x20, 0, 0, 38}, {0x15, 0, 7, 0x20010db8},
                          {0x20, 0, 0, 42}, {0x15, 0, 5, 0},       {0x20, 0, 0, 46}, {0x15, 0, 3, 0},
                          {0x20, 0, 0, 50}, {0x15, 0, 1, 1},       {0x06, 0, 0, 1},  {0x06, 0, 0, 0}};
const Instructions kPort{// tcp port 9
                         {0x28, 0, 0, 12},     {0x15, 0, 6, 0x86dd}, {0x30, 0, 0, 20}, {0x15, 0, 15, 6},
                         {0x28, 0, 0, 54},     {0x15, 12, 0, 9},     {0x28, 0, 0, 56}, {0x15, 10, 11, 9},
                         {0x15, 0, 10, 0x800}, {0x30, 0, 0, 23},     {0x15, 0, 8, 6},  {0x28, 0, 0, 20},
                         {0x45, 6, 0, 0x1fff}, {0xb1, 0, 0, 14},     {0x48, 0, 0, 14}, {0x15, 2, 0, 9},
                         {0x48, 0, 0, 16},     {0x15, 0, 1, 9},      {0x06, 0, 0, 1},  {0x06, 0, 0, 0}};
const Instructions kAll{{0x06, 0, 0, 1}};

// Established packets during a capture, in addition to the packets themselves.
void count_captured(World& world, IpFamily family, const std::vector<Frame>& order) {
    const struct {
        const char* name;
        const Instructions& filter;
    } rows[] = {
        {"no_match", family == IpFamily::V4 ? kHost4 : kHost6}, {"no_match_port", kPort}, {"match", kAll}};
    for (const auto& row : rows) {
        constexpr uint32_t kSlots = 4'096;
        const auto filter = capture::Program::make(row.filter);
        PENSTOCK_CHECK(filter);
        pipeline::Tap tap({.filter = *filter}, kSlots);
        InstructionCount count("capture." + name_of(family) + "." + row.name);
        world.send_captured(order, tap, count);
        count.report(order.size(), "packet");
    }
}

// Opens connections and returns packets of both directions, in an arbitrary order.
std::vector<Frame> established_packets(World& world, IpFamily family, Protocol protocol) {
    std::vector<Frame> frames, order;
    for (uint32_t n = 0; n < kEstablished; ++n) {
        const packet::FlowKey forward = client_flow(family, protocol, n);
        const packet::FlowKey reverse = world.open(forward);
        frames.push_back(make_frame(forward, test::kUp, kAck));
        frames.push_back(make_frame(reverse, test::kCluster, kAck));
    }
    test::Prng prng(1);
    for (uint32_t n = 0; n < kPackets; ++n) {
        order.push_back(frames[prng.below(frames.size())]);
    }
    return order;
}

void count_packets(World& world, const std::string& name, const std::vector<Frame>& frames) {
    InstructionCount count(name);
    world.send(frames, &count);
    count.report(frames.size(), "packet");
}

void count_established(World& world, IpFamily family, Protocol protocol) {
    const std::vector<Frame> packets = established_packets(world, family, protocol);
    count_packets(
        world,
        "pipeline." + name_of(family) + (protocol == Protocol::Tcp ? ".tcp.established" : ".udp.established"),
        packets);
    if (protocol == Protocol::Tcp) {
        count_captured(world, family, packets);
    }
}

std::vector<Frame> syns(IpFamily family) {
    std::vector<Frame> frames;
    for (uint32_t n = 0; n < kNewFlows; ++n) {
        frames.push_back(make_frame(client_flow(family, Protocol::Tcp, kEstablished + n), test::kUp, kSyn));
    }
    return frames;
}

void count_new(World& world, IpFamily family) {
    count_packets(world, "pipeline." + name_of(family) + ".tcp.new", syns(family));
}

// The same with a feature configured.
void count_feature(World& world, IpFamily family, const std::string& feature) {
    const std::string name = feature + "." + name_of(family) + ".tcp.";
    count_packets(world, name + "established", established_packets(world, family, Protocol::Tcp));
    count_packets(world, name + "new", syns(family));
}

// Replies that the NIC delivers to another worker than their owner.
void count_handed_off(World& world, IpFamily family) {
    std::vector<Frame> replies, order;
    for (uint32_t n = 0; n < kEstablished; ++n) {
        const packet::FlowKey reverse = world.open(client_flow(family, Protocol::Tcp, n));
        replies.push_back(make_frame(reverse, test::kCluster, kAck));
    }
    test::Prng prng(1);
    for (uint32_t n = 0; n < kPackets; ++n) {
        order.push_back(replies[prng.below(replies.size())]);
    }
    InstructionCount at_home("workers2." + name_of(family) + ".tcp.established");
    world.send(order, &at_home);
    at_home.report(kPackets, "packet");
    InstructionCount count("workers2." + name_of(family) + ".tcp.handed_off");
    world.send_misplaced(order, count);
    count.report(kPackets, "packet");
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
        perf::World measured(perf::kConnections, {.measures_latencies = true});
        perf::count_feature(measured, family, "latency");
        perf::World shared(perf::kConnections, {.forwards_strays = true});
        perf::count_feature(shared, family, "shares");
        perf::World two_workers(perf::kConnections, {.workers = 2});
        perf::count_handed_off(two_workers, family);
    }
}
