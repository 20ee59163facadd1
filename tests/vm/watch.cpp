// SPDX-License-Identifier: Apache-2.0
// Opens one NicPort as penstockd does, with a random RSS key and, if requested, with flow rules, and reports
// the packets received on each queue: one JSON object per line, for tests/vm/steering_cases.py. It does not
// evaluate them.
//
//   watch DEVICE WORKERS FRAMES SECONDS [rules]
//
// Ends after FRAMES frames that are TCP or UDP, or after SECONDS.
#include <fmt/core.h>
#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include <array>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "dataplane/nat/toeplitz.hpp"
#include "dataplane/packet/parse.hpp"
#include "drivers/eal/eal.hpp"
#include "drivers/eal/mempool.hpp"
#include "drivers/flow/flow_install.hpp"
#include "drivers/flow/flow_rule.hpp"
#include "drivers/port/nic_port.hpp"

namespace penstock {
namespace {

using drivers::FlowKind;
using drivers::FlowVerb;

constexpr unsigned kMemoryMb = 256;
constexpr uint16_t kBurst = 32;

// The texts of this program contain no quotation mark or backslash, but a driver's messages may.
std::string quoted(std::string_view text) {
    std::string out = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') {
            out += '\\';
        }
        out += c >= ' ' ? c : ' ';
    }
    return out + "\"";
}

void tell(const std::string& line) {
    std::puts(line.c_str());
    std::fflush(stdout);
}

[[noreturn]] void give_up(const Error& error) {
    tell(fmt::format(R"({{"error":{}}})", quoted(error.what)));
    std::exit(1);
}

template <typename T>
T must(Result<T> result) {
    if (!result) {
        give_up(result.error());
    }
    return std::move(*result);
}

void must(const Status& status) {
    if (!status) {
        give_up(status.error());
    }
}

drivers::FlowMatch udp_to_port(L4Port port, L4Port mask) {
    return {.family = IpFamily::V4,
            .ip_protocol = drivers::kIpUdp,
            .destination_port = port,
            .destination_port_mask = mask};
}

// Rules for the frames of tests/vm/steering_cases.py, and rules that a gateway would install.
std::vector<drivers::FlowRule> rules_to_try() {
    drivers::FlowMatch tcp = udp_to_port(4003, 0xffff);
    tcp.ip_protocol = drivers::kIpTcp;
    const drivers::FlowMatch from_blocked{.family = IpFamily::V4,
                                          .source = *Prefix::parse("198.51.100.0/24")};
    const drivers::FlowMatch to_vip{.family = IpFamily::V4,
                                    .destination = IpAddr::v4(203, 0, 113, 20),
                                    .ip_protocol = drivers::kIpTcp,
                                    .destination_port = 80,
                                    .destination_port_mask = 0xffff};
    return {
        {FlowKind::SourceDrop, from_blocked, {FlowVerb::Drop, 0}, true},
        {FlowKind::SnatToQueue, udp_to_port(4001, 0xffff), {FlowVerb::ToQueue, 1}, false},
        {FlowKind::SnatToQueue, udp_to_port(4002, 0xffff), {FlowVerb::ToQueue, 2}, false},
        {FlowKind::SnatToQueue, tcp, {FlowVerb::ToQueue, 3}, false},
        {FlowKind::SnatToQueue, udp_to_port(64, 192), {FlowVerb::ToQueue, 1}, false},
        {FlowKind::VipMark, to_vip, {FlowVerb::Mark, 7}, false},
    };
}

void install(drivers::PortFlows& flows) {
    for (const drivers::FlowRule& rule : rules_to_try()) {
        const Status added = flows.add(rule);
        tell(fmt::format(R"({{"rule":{},"kind":"{}","granted":{},"why":{}}})",
                         quoted(rule.match.to_string() + " -> " + rule.action.to_string()),
                         to_string(rule.kind), added.has_value(), quoted(added ? "" : added.error().what)));
    }
}

// Reports one frame; true if it belongs to a flow.
bool tell_frame(const rte_mbuf& frame, uint16_t queue, const std::optional<nat::ReplyHash>& hash,
                const std::optional<nat::Toeplitz>& toeplitz) {
    packet::Parsed parsed;
    const ByteView bytes{rte_pktmbuf_mtod(&frame, const uint8_t*), frame.data_len};
    if (!packet::parse(bytes, parsed) || parsed.kind != packet::PacketKind::Flow) {
        return false;
    }
    // The predicted queue for this hash: workers poll queues in turn, one each.
    std::string foretold = "null";
    if (hash && toeplitz && hash->covers(parsed.key.source.family(), parsed.key.protocol)) {
        foretold = std::to_string(hash->worker_of[toeplitz->of(parsed.key) % hash->worker_of.size()].value);
    }
    tell(fmt::format(R"({{"queue":{},"foretold":{},"flow":{}}})", queue, foretold,
                     quoted(parsed.key.to_string())));
    return true;
}

unsigned watch(const drivers::NicPort& port, unsigned frames_wanted, std::chrono::seconds limit) {
    const auto& facts = port.facts();
    const auto& hash = facts.steering.reply_hash;
    std::optional<nat::Toeplitz> toeplitz;
    if (hash) {
        toeplitz.emplace(hash->key);
    }
    const auto deadline = std::chrono::steady_clock::now() + limit;
    unsigned seen = 0;
    while (seen < frames_wanted && std::chrono::steady_clock::now() < deadline) {
        for (uint16_t queue = 0; queue < facts.rx_queues; ++queue) {
            std::array<rte_mbuf*, kBurst> frames{};
            const uint16_t count = rte_eth_rx_burst(facts.dpdk_port, queue, frames.data(), kBurst);
            for (rte_mbuf* frame : std::span(frames).first(count)) {
                seen += tell_frame(*frame, queue, hash, toeplitz) ? 1 : 0;
                rte_pktmbuf_free(frame);
            }
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return seen;
}

int run(std::span<char*> arguments) {
    if (arguments.size() < 5) {
        std::fputs("watch DEVICE WORKERS FRAMES SECONDS [rules]\n", stderr);
        return 2;
    }
    const std::string device = arguments[1];
    const auto workers = static_cast<unsigned>(std::stoul(arguments[2]));
    const auto frames = static_cast<unsigned>(std::stoul(arguments[3]));
    const std::chrono::seconds limit{std::stoul(arguments[4])};
    const bool with_rules = arguments.size() > 5;

    const drivers::NoticeSink sink = [](drivers::NoticeLevel, std::string_view line) {
        tell(fmt::format(R"({{"log":{}}})", quoted(line)));
    };
    drivers::EalOptions options{.worker_cpus = {0}, .memory_mb = kMemoryMb, .sink = sink};
    if (auto parsed = drivers::DeviceString::parse(device); parsed && parsed->is_pci) {
        options.pci_allow = {parsed->name};
    }
    const auto eal = must(drivers::Eal::start(options));
    drivers::Mempools pools;
    const auto port = must(drivers::NicPort::probe(NicPortId{0},
                                                   {.device = device,
                                                    .twin_name = "none",
                                                    .rx_queues = workers,
                                                    .tx_queues = workers,
                                                    .rss_key = drivers::random_rss_key()},
                                                   sink));
    drivers::MempoolDemand demand{.workers = workers};
    port->add_demand(demand);
    must(pools.add(port->facts().socket, demand));
    must(port->configure(pools.on(port->facts().socket), workers));
    must(port->start());
    const auto& facts = port->facts();
    tell(fmt::format(
        R"({{"driver":"{}","mac":"{}","rx_queues":{},"steering":"{}","reason":{},"check_failed":{}}})",
        facts.driver, facts.mac.to_string(), facts.rx_queues, to_string(facts.steering.steering),
        quoted(facts.steering.reason), quoted(facts.check_failed)));
    for (const auto& setting : facts.settings) {
        tell(fmt::format(R"({{"setting":{},"asked":{},"granted":{},"why":{}}})", quoted(setting.name),
                         quoted(setting.asked), quoted(setting.granted), quoted(setting.reason)));
    }

    drivers::PortFlows flows(drivers::open_flow_driver(facts.dpdk_port), {.rx_queues = facts.rx_queues});
    if (with_rules) {
        install(flows);
    }
    tell(R"({"ready":true})");
    const unsigned seen = watch(*port, frames, limit);
    for (const auto& [rule, installed] : flows.installed()) {
        if (const auto hits = flows.hits(rule)) {
            tell(fmt::format(R"({{"hits":{},"kind":"{}"}})", hits->packets, to_string(rule.kind)));
        }
    }
    must(flows.clear());
    tell(fmt::format(R"({{"seen":{}}})", seen));
    return 0;
}

}  // namespace
}  // namespace penstock

int main(int argc, char** argv) {
    return penstock::run({argv, static_cast<size_t>(argc)});
}
