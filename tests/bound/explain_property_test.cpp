// SPDX-License-Identifier: Apache-2.0
// `explain` against the pipeline that it describes. Random configurations and packets; explain is called for
// the packet first, then run_stages() processes the packet on the contexts of the same workers. The loops of
// the workers are stopped, so nothing else changes their state in between.
//
// The draws follow PENSTOCK_SEED. The workers' hash keys are random in each run. A replay therefore repeats
// the configurations and the packets of new flows, but not the choices of random schedulers and of SNAT
// ports, and the packets of known flows only if these choices do not matter.
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "dataplane/packet/parse.hpp"
#include "tests/bound/explain_draws.hpp"
#include "tests/bound/stopped_workers.hpp"
#include "tests/support/eal_fixture.hpp"
#include "tests/support/prng.hpp"
#include "tests/support/sanitizers.hpp"
#include "tests/support/virtual_gateway.hpp"

namespace penstock::test {
namespace explain_property_test {

using packet::FlowKey;

constexpr uint32_t kWorlds = 150;  // per number of workers
constexpr uint32_t kPacketsPerWorld = 45;

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

bool has_step(const worker::Explanation& explained, const std::string& stage) {
    return std::ranges::find(explained.steps, stage, &worker::ExplainStep::stage) != explained.steps.end();
}
std::string text_of_steps(const worker::Explanation& explained) {
    std::string text;
    for (const worker::ExplainStep& step : explained.steps) {
        text += "  " + step.stage + ": " + step.finding + "\n";
    }
    return text;
}

// Empty if explain and the pipeline agree.
std::string difference(const worker::Explanation& explained, const PacketResult& done) {
    const char* verdict = done.is_answer && done.verdict != Verdict::Drop ? "reject"
                          : done.verdict == Verdict::Transmit             ? "transmit"
                          : done.verdict == Verdict::Hold                 ? "hold"
                          : done.verdict == Verdict::Punt                 ? "punt"
                          : done.verdict == Verdict::Drop                 ? "drop"
                                                                          : "another verdict";
    // Documented: of the ports that may be reclaimed, the worker examines only some.
    if (done.verdict == Verdict::Drop && done.reason == DropReason::SnatPortsExhausted &&
        text_of_steps(explained).find("some of the ports and drops the packet") != std::string::npos) {
        return "";
    }
    if (explained.verdict != verdict) {
        return "verdict " + explained.verdict + ", done: " + verdict +
               (done.verdict == Verdict::Drop ? " " + std::string(text_of(done.reason).counter) : "");
    }
    if (explained.verdict == "reject") {
        return explained.leaves_as ? "an answer does not leave as a flow" : "";
    }
    if (explained.verdict == "drop") {
        return explained.reason == done.reason
                   ? ""
                   : "reason " + std::string(explained.reason ? text_of(*explained.reason).counter : "none") +
                         ", done: " + std::string(text_of(done.reason).counter);
    }
    if (explained.reason) {
        return "a reason without a drop";
    }
    const bool is_new = has_step(explained, "snat");
    if (is_new != done.opened) {
        return std::string("explained as a packet of a ") + (is_new ? "new" : "known") + " flow";
    }
    if (explained.verdict == "punt" && !explained.leaves_as) {
        return "";
    }
    if (!explained.leaves_as) {
        return "no tuple";
    }
    packet::Parsed after;
    if (!packet::parse(done.frame, after)) {
        return "the frame that leaves is malformed";
    }
    const std::string steps = text_of_steps(explained);
    FlowKey expected = *explained.leaves_as;
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
        return "leaves as " + explained.leaves_as->to_string() + ", done: " + after.key.to_string();
    }
    if (const bool is_expected = steps.find("reclaimed from another connection") != std::string::npos;
        is_expected != done.reclaimed) {
        return is_expected ? "the port is not reclaimed" : "the port is reclaimed";
    }
    if (explained.verdict == "punt") {
        const std::string twin = "through the twin of NicPort " + std::to_string(done.egress.value);
        return steps.find(twin) != std::string::npos ? "" : "done: " + twin;
    }
    if (explained.egress != done.egress) {
        return "egress " + std::to_string(explained.egress.value) +
               ", done: " + std::to_string(done.egress.value);
    }
    if (explained.verdict == "hold") {
        return explained.next_hop == done.next_hop && !explained.next_hop_mac
                   ? ""
                   : "next hop, done: " + done.next_hop.to_string();
    }
    return explained.next_hop_mac == load<MacAddr>(done.frame.data()) ? "" : "the next hop's MAC address";
}

void count(Counts& counts, const worker::ExplainQuery& query, const worker::Explanation& explained,
           const PacketResult& done) {
    const FlowKey& key = query.key;
    const std::string steps = text_of_steps(explained);
    const auto mentions = [&](const char* words) { return steps.find(words) != std::string::npos; };
    const std::string protocol = key.protocol == Protocol::Tcp   ? (query.tcp_not_syn ? "tcp ack" : "tcp syn")
                                 : key.protocol == Protocol::Udp ? "udp"
                                                                 : "sctp init";
    const std::string family = key.source.is_v4() ? "ipv4" : "ipv6";
    const std::string kind = has_step(explained, "connection") && mentions("direction of a connection")
                                 ? (mentions("forward direction") ? "known, forward" : "known, reverse")
                             : has_step(explained, "connection") ? "new"
                                                                 : "before the connections";
    counts.add("packet " + protocol + ", " + family + ", " + kind);
    counts.add("verdict " + explained.verdict + ", " + kind);
    if (explained.reason) {
        counts.add("reason " + std::string(text_of(*explained.reason).counter));
    }
    const auto note = [&](const char* name, bool applies) {
        if (applies) {
            counts.add(name);
        }
    };
    note("to the other family, new", done.opened && has_step(explained, "convert"));
    note("to the other family, known", !done.opened && has_step(explained, "convert"));
    note("to a NodePort",
         done.opened && (key.destination == kUpAddress || key.destination == kClusterAddress6));
    note("source kept", done.opened && mentions("keeps the client's address and port"));
    note("source translated", done.opened && mentions("the source becomes"));
    note("hairpin", done.opened && explained.leaves_as && explained.leaves_as->destination == key.source);
    note("port reclaimed", done.reclaimed);
    note("former source", done.opened && mentions("which the finished connection had"));
    note("own port for an endpoint on the host", done.opened && mentions("the source port becomes one of"));
    note("pinned by affinity", done.opened && mentions("pinned to "));
    note("first of its affinity", done.opened && mentions("none: the client will be pinned"));
    note("set for inside clients", done.opened && mentions("is inside the cluster"));
    note("picked up in mid-stream", done.opened && mentions("picked up as a mid-stream"));
    note("endpoint on the host", done.opened && explained.verdict == "punt");
    note("kept tuple is taken", done.opened && mentions("already have a flow to"));
    note("reopened", done.opened && mentions("in its place"));
    note("answered for a flow under reset", mentions("is answered by RSTs"));
    note("by a gateway", explained.next_hop && explained.leaves_as &&
                             *explained.next_hop != explained.leaves_as->destination);
    note("to another worker", mentions("is handed to it"));
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
std::string difference_with(Extra extra, const worker::ExplainQuery& query,
                            const worker::Explanation& explained, const PacketResult& done,
                            bool options_pass) {
    if (extra == Extra::Options && options_pass) {
        return difference(explained, done);
    }
    if (has_step(explained, "connection") &&
        text_of_steps(explained).find("assumed: TTL above 1, no IP options") == std::string::npos) {
        return "the assumption is missing";
    }
    if (extra == Extra::Options) {
        const bool is_judged_before =
            explained.reason == DropReason::MartianSource || query.key.destination.is_multicast();
        return is_judged_before || (done.verdict == Verdict::Drop && done.reason == DropReason::IpOptions)
                   ? ""
                   : "the options pass";
    }
    // Without a route to the sender, the answer (ICMP time exceeded) is dropped.
    const bool expires =
        done.is_answer || (done.verdict == Verdict::Drop &&
                           (done.reason == DropReason::TtlExpired || done.reason == DropReason::NoRoute));
    const bool is_sent_on = explained.leaves_as && explained.verdict != "drop";
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
                const worker::Explanation explained = workers.inspect().explain(query);
                const PacketResult done =
                    workers.run(frame_of(of_packet, query, extra), query.port, query.receiver);
                const bool options_pass = world.snapshot.packets.passes_ip_options;
                ASSERT_EQ(extra == Extra::None ? difference(explained, done)
                                               : difference_with(extra, query, explained, done, options_pass),
                          "")
                    << worker_count << " workers, world " << w << ", packet " << p << ": "
                    << query.key.to_string() << (query.tcp_not_syn ? ", not SYN" : "")
                    << (extra == Extra::TtlOne ? ", TTL 1" : "")
                    << (extra == Extra::Options ? ", options" : "") << ", on NicPort "
                    << int{query.port.value} << "\n"
                    << text_of_steps(explained) << "  verdict: " << explained.verdict;
                if (extra == Extra::None) {
                    count(counts, query, explained, done);
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
