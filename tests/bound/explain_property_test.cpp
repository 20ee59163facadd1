// SPDX-License-Identifier: Apache-2.0
// `explain` against the pipeline that it describes. Random configurations and packets; explain is called for
// the packet first, then run_stages() processes the packet on the contexts of the same workers. The loops of
// the workers are stopped, so nothing else changes their state in between.
//
// The draws and the workers' hash keys follow PENSTOCK_SEED, so a replay repeats the whole run.
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "dataplane/nat/snat.hpp"
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

// Text for the kind of an answer, as in the steps of explain.
std::string kind_of_answer(ByteView frame) {
    constexpr size_t kL3 = 14;
    constexpr uint8_t kRstFlag = 4, kAbortChunk = 6;
    const bool is_v4 = (frame[kL3] >> 4) == 4;
    const uint8_t protocol = is_v4 ? frame[kL3 + 9] : frame[kL3 + 6];
    const ByteView l4 = frame.subspan(kL3 + (is_v4 ? 20 : 40));
    switch (protocol) {
        case 6:
            return (l4[13] & kRstFlag) != 0 ? "RST" : "TCP without RST";
        case 132:
            return l4[12] == kAbortChunk ? "ABORT" : "SCTP without ABORT";
        case 1:
            return l4[0] == 3 && l4[1] == 3 ? "ICMP port unreachable"
                   : l4[0] == 11            ? "ICMP time exceeded"
                                            : "another ICMP message";
        case 58:
            return l4[0] == 1 && l4[1] == 4 ? "ICMPv6 port unreachable"
                   : l4[0] == 3             ? "ICMPv6 time exceeded"
                                            : "another ICMPv6 message";
        default:
            return "protocol " + std::to_string(protocol);
    }
}

std::string difference_of_answer(const worker::Explanation& explained, const PacketResult& done) {
    if (explained.leaves_as) {
        return "an answer does not leave as a flow";
    }
    const std::string steps = text_of_steps(explained);
    const std::string kind = kind_of_answer(done.frame);
    return steps.find("rejected with " + kind) != std::string::npos ||
                   steps.find("is answered by " + kind + "s") != std::string::npos
               ? ""
               : "answer, done: " + kind;
}

// The pipeline dropped a packet for which explain expects a reclaimed port. That is documented if the worker
// may use more ports than it examines (kPortsLookedAt in pipeline/opening/reclaim.cpp).
bool examines_too_few_ports(const worker::Explanation& explained, const PacketResult& done) {
    constexpr uint32_t kExamined = 64;
    const std::string steps = text_of_steps(explained);
    const size_t usable = steps.find(": all ");
    return done.verdict == Verdict::Drop && done.reason == DropReason::SnatPortsExhausted &&
           (explained.verdict == "transmit" || explained.verdict == "hold") &&
           explained.worker == done.worker &&
           steps.find("some of the ports and drops the packet") != std::string::npos &&
           usable != std::string::npos && std::stoul(steps.substr(usable + 6)) > kExamined;
}

// A translated flow has a configured SNAT address, a port that may be used there, and its replies are owned
// by the worker that opened it. It is one of the frontend's share, if the share has one of this family, and
// otherwise one of no share. `after`: the packet as it left.
std::string difference_of_source(const FlowKey& before, const FlowKey& after, const PacketResult& done,
                                 StoppedWorkers& workers) {
    const pipeline::WorkerContext& context = workers.context(done.worker);
    const nat::SnatConfig& snat = *context.snapshot->snat;
    const nat::SnatAddress* const address = snat.addresses.find(after.source);
    if (address == nullptr) {
        return after.source.to_string() + " is no SNAT address";
    }
    const lb::FrontendRow* frontend =
        context.snapshot->services->find(before.destination, before.destination_port, before.protocol);
    const bool share_has_one = std::ranges::any_of(snat.addresses, [&](const nat::SnatAddress& candidate) {
        return candidate.group == frontend->snat_group && candidate.address.family() == after.source.family();
    });
    if (address->group != (share_has_one ? frontend->snat_group : 0)) {
        return after.source.to_string() + " belongs to another share than the frontend";
    }
    const nat::HostPorts host{context.snapshot->services->node_port_bits(after.protocol), 0};
    const nat::PortRules rules = nat::rules_for(snat, *address, host);
    if (!rules.is_usable(after.source_port)) {
        return "port " + std::to_string(after.source_port) + " is not usable for SNAT";
    }
    return context.owner.of_snat_reply(address->egress, after.reversed()) == done.worker
               ? ""
               : "another worker owns the replies to port " + std::to_string(after.source_port);
}

// The same for a flow to an endpoint on the gateway host that keeps only the client's address.
std::string difference_of_own_port(const FlowKey& before, const FlowKey& after, const PacketResult& done,
                                   StoppedWorkers& workers) {
    return after.source == before.source &&
                   workers.context(done.worker).owner.of_snat_port(after.source_port) == done.worker
               ? ""
               : "the source of the packet to the host: " + after.to_string();
}

// Empty if explain and the pipeline agree. `before`: the packet as it arrived.
std::string difference(const FlowKey& before, const worker::Explanation& explained, const PacketResult& done,
                       StoppedWorkers& workers) {
    const char* verdict = done.is_answer && done.verdict != Verdict::Drop ? "reject"
                          : done.verdict == Verdict::Transmit             ? "transmit"
                          : done.verdict == Verdict::Hold                 ? "hold"
                          : done.verdict == Verdict::Punt                 ? "punt"
                          : done.verdict == Verdict::Drop                 ? "drop"
                                                                          : "another verdict";
    if (examines_too_few_ports(explained, done)) {
        return "";
    }
    if (explained.verdict != verdict) {
        return "verdict " + explained.verdict + ", done: " + verdict +
               (done.verdict == Verdict::Drop ? " " + std::string(text_of(done.reason).counter) : "");
    }
    if (explained.worker != done.worker) {
        return "worker " + std::to_string(explained.worker.value) +
               ", done: " + std::to_string(done.worker.value);
    }
    if (explained.verdict == "reject") {
        return difference_of_answer(explained, done);
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
    if (steps.find("the source becomes ") != std::string::npos) {
        if (std::string text = difference_of_source(before, after.key, done, workers); !text.empty()) {
            return text;
        }
    } else if (explained.leaves_as->source_port == 0) {
        if (std::string text = difference_of_own_port(before, after.key, done, workers); !text.empty()) {
            return text;
        }
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
    note("source of a share", done.opened && mentions(" of share "));
    note("source of no share, for another family", done.opened && mentions(" has no SNAT address of "));
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
    note("all examined ports are taken", examines_too_few_ports(explained, done));
    if (explained.verdict == "reject") {
        counts.add("answer " + kind_of_answer(done.frame));
    }
    note("answered for a flow under reset", mentions("is answered by RSTs"));
    note("by a gateway", explained.next_hop && explained.leaves_as &&
                             *explained.next_hop != explained.leaves_as->destination);
    note("to another worker", mentions("is handed to it"));
    note("taken over from a copy", mentions("taken over from the copy of the connection"));
    note("forwarded as a stray", mentions(": a stray, forwarded unchanged to gateway "));
    note("of a share, served here", mentions(": served here, by gateway "));
    note("of a share without a gateway that gets it", mentions(" cannot get it ("));
    note("copy refused", mentions("its copy cannot be taken over"));
}

// What must have been compared, each at least once.
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
                                   "answer RST",
                                   "answer ABORT",
                                   "answer ICMP port unreachable",
                                   "answer ICMPv6 port unreachable",
                                   "by a gateway",
                                   "to another worker",
                                   "taken over from a copy",
                                   "copy refused",
                                   "forwarded as a stray",
                                   "of a share, served here",
                                   "of a share without a gateway that gets it",
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
                            const worker::Explanation& explained, const PacketResult& done, bool options_pass,
                            StoppedWorkers& workers) {
    if (extra == Extra::Options && options_pass) {
        return difference(query.key, explained, done, workers);
    }
    if (has_step(explained, "connection") &&
        text_of_steps(explained).find("assumed: TTL above 1, no IP options") == std::string::npos) {
        return "the assumption is missing";
    }
    if (extra == Extra::Options) {
        const bool is_judged_before =
            (explained.reason == DropReason::MartianSource && !has_step(explained, "owner")) ||
            query.key.destination.is_multicast();
        return is_judged_before || (done.verdict == Verdict::Drop && done.reason == DropReason::IpOptions)
                   ? ""
                   : "the options pass";
    }
    // Without a route to the sender, the answer (ICMP time exceeded) is dropped.
    const bool expires = (done.is_answer && kind_of_answer(done.frame).ends_with("time exceeded")) ||
                         (done.verdict == Verdict::Drop &&
                          (done.reason == DropReason::TtlExpired || done.reason == DropReason::StrayTtl ||
                           done.reason == DropReason::NoRoute));
    const bool is_sent_on = explained.leaves_as && explained.verdict != "drop";
    return is_sent_on && !expires ? "TTL 1 does not expire" : "";
}

// Whether the connection of a copy lives, as its control thread learns it. Returns how many do.
uint64_t expect_lives(StoppedWorkers& workers) {
    uint64_t live = 0;
    workers.copies().for_each([&](copies::Store::Slot slot) {
        const conn::Connection copy = workers.copies().at(slot);
        bool lives = false;
        for (uint8_t w = 0; w < workers.count(); ++w) {
            const conn::Table& connections = workers.context({w}).connections;
            const conn::Found found = connections.find(copy.forward, connections.hash(copy.forward));
            lives |=
                found.is_hit() && connections.at(found.index).key(conn::Direction::Reverse) == copy.reverse;
        }
        EXPECT_EQ(workers.inspect().has_connection(copy.forward, copy.reverse), lives);
        live += lives ? 1 : 0;
    });
    return live;
}

TEST(Explain, AgreesWithThePipeline) {
    if (kUnderThreadSanitizer) {
        GTEST_SKIP() << "DPDK's lcores synchronise by barriers that TSan cannot see";
    }
    ASSERT_TRUE(start_eal());
    Prng random;
    Counts counts;
    uint64_t copies_that_live = 0;
    for (const uint32_t worker_count : {1U, 2U, 4U}) {
        VirtualGateway gateway;
        StoppedWorkers workers(worker_count);
        for (uint32_t w = 0; w < kWorlds; ++w) {
            if (!random.one_in(3)) {
                workers.close_all();
            }
            // Copies are removed with the configuration in which they were made, or outlive it.
            if (random.one_in(2)) {
                workers.copies().for_each([&](copies::Store::Slot slot) { workers.copies().remove(slot); });
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
                ASSERT_EQ(extra == Extra::None
                              ? difference(query.key, explained, done, workers)
                              : difference_with(extra, query, explained, done, options_pass, workers),
                          "")
                    << worker_count << " workers, world " << w << ", packet " << p << ": "
                    << query.key.to_string() << (query.tcp_not_syn ? ", not SYN" : "")
                    << (extra == Extra::TtlOne ? ", TTL 1" : "")
                    << (extra == Extra::Options ? ", options" : "") << ", on NicPort "
                    << int{query.port.value} << "\n"
                    << text_of_steps(explained) << "  verdict: " << explained.verdict;
                copies_that_live += expect_lives(workers);
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
    EXPECT_GT(copies_that_live, 0U);
    for (const std::string& kind : required_kinds()) {
        EXPECT_GT(counts.of(kind), 0U) << kind;
    }
    std::cout << counts.to_string();
}

}  // namespace explain_property_test
}  // namespace penstock::test
