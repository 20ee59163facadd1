// SPDX-License-Identifier: Apache-2.0
#include "perf/exceptional/road.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "dataplane/packet/fragment_ipv4.hpp"
#include "dataplane/packet/parse.hpp"
#include "dataplane/stats/counters.hpp"

namespace penstock::perf {
namespace {

constexpr uint8_t kCookieEcho = 10, kCookieAck = 11;
// The limit of answers must not be reached, because otherwise the limit would be measured. One answer for
// each tick of this machine's clock, all of them available at once.
constexpr uint32_t kNoLimit = 1'000'000'000;
// By then half-open flows of every protocol have expired (conn::Timeouts).
constexpr uint64_t kIdleSeconds = 100;

test::VirtualGateway::Options options_of(const Road::Policy& policy) {
    const uint32_t answers = policy.answers_one_packet_only ? 1 : kNoLimit;
    // Secrets that are equal in every run, and so are the packets' positions in the tables.
    return {.connections = 16'384,
            .rejects_per_second = answers,
            .rejects_burst = answers,
            .errors_per_second = answers,
            .errors_burst = answers,
            .secrets_from = 1};
}

L4Port source_port_of(const FrameBytes& frame) {
    packet::Parsed parsed;
    PENSTOCK_CHECK(packet::parse(frame, parsed));
    return parsed.key.source_port;
}

}  // namespace

uint64_t Path::packets() const noexcept {
    uint64_t sum = 0;
    for (const Step& step : steps) {
        sum += step.frames.size();
    }
    return sum;
}

Road::Road(const test::Ends& ends, const Policy& policy) : ends_(ends), gateway_(options_of(policy)) {
    test::TestService other = test::service_on_both(Protocol::Udp, kOtherPort, kUdpEndpointPort);
    other.endpoints_of = other_family(ends.family);
    gateway_.publish(
        {test::service_on_both(Protocol::Tcp, kTcpPort, kTcpEndpointPort),
         test::service_on_both(Protocol::Udp, kUdpPort, kUdpEndpointPort),
         test::service_on_both(Protocol::Sctp, kSctpPort, kSctpEndpointPort),
         test::service_on_both(Protocol::Udp, kKeptPort, kKeptEndpointPort, lb::SourceMode::Keep),
         {.name = "empty", .frontends = {{ends.vip, kEmptyPort}}},
         {.name = "empty", .protocol = Protocol::Udp, .frontends = {{ends.vip, kEmptyPort}}},
         {.name = "empty", .protocol = Protocol::Sctp, .frontends = {{ends.vip, kEmptyPort}}},
         other});
    config::PacketPolicy packets = gateway_.snapshot().packets;
    packets.passes_ip_options = policy.passes_ip_options;
    gateway_.set_packets(packets);
    open_flows();
}

void Road::open_flows() {
    for (uint32_t n = 0; n < kFlows; ++n) {
        const auto port = static_cast<uint16_t>(kFirstPort + n);
        const auto client = [&] { return ends_.from_client(); };
        const auto endpoint = [&] { return ends_.from_backend(kHost); };
        const L4Port tcp = source_port_of(sent(client().tcp(port, kTcpPort, "S").build(), test::kUp));
        tcp_ports_at_endpoint_.push_back(tcp);
        sent(endpoint().tcp(kTcpEndpointPort, tcp, "SA").build(), test::kCluster);
        sent(client().tcp(port, kTcpPort, "A").build(), test::kUp);

        to_endpoint_.push_back(sent(client().udp(port, kUdpPort).payload("query").build(), test::kUp));
        const L4Port udp = source_port_of(to_endpoint_.back());
        to_client_.push_back(
            sent(endpoint().udp(kUdpEndpointPort, udp).payload("answer").build(), test::kCluster));

        to_other_endpoint_.push_back(
            sent(client().udp(port, kOtherPort).payload("query").build(), test::kUp));

        const L4Port sctp =
            source_port_of(sent(client().sctp(port, kSctpPort, 0).sctp_init(kClientTag).build(), test::kUp));
        sent(endpoint().sctp(kSctpEndpointPort, sctp, kClientTag).sctp_init_ack(kEndpointTag).build(),
             test::kCluster);
        sent(client().sctp(port, kSctpPort, kEndpointTag).chunk(kCookieEcho, FrameBytes(64, 1)).build(),
             test::kUp);
        sent(endpoint().sctp(kSctpEndpointPort, sctp, kClientTag).chunk(kCookieAck).build(), test::kCluster);
    }
}

FrameBytes Road::sent(const FrameBytes& frame, NicPortId port) {
    const test::Outcome outcome = gateway_.send(frame, port);
    if (outcome.verdict != Verdict::Transmit) {
        std::fprintf(stderr, "exceptional: a packet that opens a flow was not forwarded: %s\n",
                     test::to_scapy(frame).c_str());
        std::exit(1);
    }
    return outcome.frame;
}

void Road::send(const FrameBytes& frame, NicPortId port) {
    static_cast<void>(gateway_.send(frame, port));
}

void Road::begin(const Path& path) {
    wrong_.clear();
    if (path.opens_flows) {
        gateway_.advance_seconds(kIdleSeconds);
        gateway_.age();
    }
    context().begin_round(&gateway_.snapshot(), context().now);
}

std::vector<uint64_t> Road::counts_of(const Path& path) const {
    std::vector<uint64_t> counts;
    for (const auto& [counter, added] : path.counts) {
        counts.push_back(gateway_.count(counter));
    }
    return counts;
}

void Road::fill(const Path& path, uint32_t at) {
    const Step& step = path.steps[at];
    if (path.time_passes) {
        context().begin_round(&gateway_.snapshot(), context().now + context().rate.milliseconds(1));
    }
    burst_.count = 0;
    released_.count = 0;
    for (const FrameBytes& frame : step.frames) {
        const size_t buffer = size_t{at % kStepsApart} * limits::kBurstMax + burst_.count;
        uint8_t* const data = buffers_.data() + buffer * kBufferBytes + kHeadroom;
        std::memcpy(data, frame.data(), frame.size());
        lengths_[buffer] = static_cast<uint16_t>(frame.size());
        // A handle that identifies the buffer, as an mbuf's address does.
        burst_.add(reinterpret_cast<rte_mbuf*>(data), data, lengths_[buffer], kBufferBytes - kHeadroom,
                   {step.port, {}}, kHeadroom);
    }
}

void Road::dispose() {
    for (uint32_t i = 0; i < burst_.count; ++i) {
        if (burst_.verdict[i] == Verdict::Await) {
            seat(burst_, i);
        } else if (burst_.verdict[i] == Verdict::Split) {
            cut(burst_, i);
        }
    }
    while (context().fragments.has_ready() && released_.count < limits::kBurstMax) {
        context().fragments.take_ready([&](rte_mbuf* handle, NicPortId port, pipeline::HandoffNote note) {
            auto* const data = reinterpret_cast<uint8_t*>(handle);
            released_.add(handle, data, lengths_[static_cast<size_t>(data - buffers_.data()) / kBufferBytes],
                          kBufferBytes - kHeadroom, {port, note}, kHeadroom);
        });
    }
    if (released_.count > 0) {
        pipeline::run_stages(context(), released_);
    }
}

void Road::seat(const pipeline::Burst& burst, uint32_t i) {
    context().fragments.fill(burst.slot[i], burst.handle[i], burst.arrival[i].port, burst.arrival[i].note);
}

// As in tx.cpp, with plain memory instead of a pool's buffers.
void Road::cut(const pipeline::Burst& burst, uint32_t i) {
    const uint16_t l3_offset = burst.parsed[i].l3_offset;
    uint8_t* const frame = burst.data[i];
    const auto fragments =
        packet::Ipv4Fragments::of(ByteView(frame, burst.length[i]).subspan(l3_offset), burst.split[i].mtu);
    PENSTOCK_CHECK(fragments);
    pieces_.resize(size_t{packet::kFragmentsMax} * kBufferBytes);
    for (uint32_t number = fragments->count(); number-- > 0;) {
        const packet::Ipv4Fragment fragment = fragments->at(number);
        uint8_t* const to = number == 0 ? frame : pieces_.data() + size_t{number} * kBufferBytes;
        if (number > 0) {
            std::memcpy(to, frame, l3_offset);
            std::memcpy(to + l3_offset + fragment.header_bytes, frame + l3_offset + fragment.payload_at,
                        fragment.payload_bytes);
        }
        std::memcpy(to + l3_offset, fragment.header.data(), fragment.header_bytes);
    }
}

void Road::judge(const Path& path, const Step& step) {
    const auto named = [](Verdict verdict, DropReason reason) {
        return std::string(to_string(verdict)) +
               (verdict == Verdict::Drop ? " " + std::string(text_of(reason).counter) : "");
    };
    for (uint32_t i = 0; i < burst_.count && wrong_.empty(); ++i) {
        const std::string is = named(burst_.verdict[i], burst_.reason[i]),
                          should_be = named(step.verdict, step.reason);
        if (is != should_be) {
            wrong_ = path.name + ": packet " + std::to_string(i) + " ended as " + is + " and not as " +
                     should_be + ": " + test::to_scapy(step.frames[i]);
        } else if (step.state && context().connections.at(burst_.found[i].index).state != *step.state) {
            wrong_ = path.name + ": packet " + std::to_string(i) +
                     " left its connection in another state: " + test::to_scapy(step.frames[i]);
        }
    }
    for (uint32_t i = 0; i < released_.count && wrong_.empty(); ++i) {
        if (released_.verdict[i] != Verdict::Transmit) {
            wrong_ = path.name + ": a packet that had waited ended as " +
                     named(released_.verdict[i], released_.reason[i]);
        }
    }
}

void Road::finish(const Path& path, const std::vector<uint64_t>& before) {
    for (size_t c = 0; c < path.counts.size() && wrong_.empty(); ++c) {
        const auto& [counter, added] = path.counts[c];
        if (const uint64_t now = gateway_.count(counter); now != before[c] + added) {
            wrong_ = path.name + ": " + std::string(stats::kCounterTexts[static_cast<size_t>(counter)].name) +
                     " rose by " + std::to_string(now - before[c]) + " and not by " + std::to_string(added);
        }
    }
}

}  // namespace penstock::perf
