// SPDX-License-Identifier: Apache-2.0
// The gateway of the counted packets: one worker with two ports, IPv4 and IPv6, some hundred frontends and
// routes, so that no search ends at its first comparison. Clients are behind a router. Every sent packet must
// leave translated; otherwise the program ends.
//
//   clients 10.80.1.2, fd00:80:1::2 --- port 0 [gateway] port 1 --- backends 10.80.2.11 .. 26,
//                                                                            fd00:80:2::11 .. 26
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "dataplane/base/ip.hpp"
#include "dataplane/config/snapshot.hpp"
#include "dataplane/packet/flow_key.hpp"
#include "dataplane/packet/parsed.hpp"
#include "dataplane/pipeline/state/burst.hpp"
#include "dataplane/pipeline/tap.hpp"
#include "perf/instructions/count.hpp"
#include "tests/support/virtual_gateway.hpp"

namespace penstock::perf {

// A prepared packet: 64 bytes on an IPv4 wire, 84 on an IPv6 one.
struct Frame {
    std::vector<uint8_t> bytes;
    NicPortId port;
};

inline constexpr packet::TcpFlags kSyn{packet::TcpFlags::kSyn};
inline constexpr packet::TcpFlags kSynAck{packet::TcpFlags::kSyn | packet::TcpFlags::kAck};
inline constexpr packet::TcpFlags kAck{packet::TcpFlags::kAck};

// `flags` is for TCP alone. The IPv4 header's checksum is correct; the transport's is arbitrary, because the
// gateway only updates it.
[[nodiscard]] Frame make_frame(const packet::FlowKey& key, NicPortId port, packet::TcpFlags flags = {});

// The n-th client socket of the family, and the frontend of its connection.
[[nodiscard]] packet::FlowKey client_flow(IpFamily family, Protocol protocol, uint32_t n);

[[nodiscard]] config::Snapshot make_snapshot();

class World {
 public:
    struct Features {
        bool measures_latencies = false;
        uint32_t workers = 1;  // on ports that keep a flow on one queue
        // The primary of 16 shares, with a second gateway. All VIPs are spread, which is the longest search.
        bool forwards_strays = false;
    };
    explicit World(uint32_t connections) : World(connections, Features{}) {}
    World(uint32_t connections, const Features& features);

    // Runs the frames through the stages in bursts of kBurstMax. Instructions are counted if `count` is
    // given, without the copies into the buffers.
    void send(std::span<const Frame> frames, InstructionCount* count = nullptr);
    // The same on two workers: each packet arrives at worker 1 and is handed over to worker 0. The
    // instructions of both are counted, without those of receive and disposal.
    void send_misplaced(std::span<const Frame> frames, InstructionCount& count);
    // As send() with a capture. Its instructions are counted, without those of the stages.
    void send_captured(std::span<const Frame> frames, pipeline::Tap& tap, InstructionCount& count);
    // Opens the connection with the packets that make it established in both directions. Returns its reverse
    // key, backend -> gateway.
    packet::FlowKey open(const packet::FlowKey& forward);

    [[nodiscard]] const config::Snapshot& snapshot() const { return snapshot_; }
    [[nodiscard]] pipeline::WorkerContext& context() { return gateway_.worker(0); }

 private:
    void fill(std::span<const Frame> frames, uint32_t worker = 0);
    void check_sent(const pipeline::Burst& burst) const;

    static constexpr uint16_t kBufferBytes = 256;

    test::VirtualGateway gateway_;
    config::Snapshot snapshot_ = make_snapshot();
    TscTime now_{1'000'000'000'000};
    pipeline::Burst burst_, handed_;
    std::vector<uint8_t> buffers_ = std::vector<uint8_t>(size_t{limits::kBurstMax} * kBufferBytes);
};

}  // namespace penstock::perf
