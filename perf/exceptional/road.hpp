// SPDX-License-Identifier: Apache-2.0
// A gateway of one worker with open flows of each protocol, and bursts of one kind of packet that pass its
// real stages repeatedly. The caller of drive() selects the measurement. Road itself checks that every packet
// ended as its path requires, so that no result belongs to another path.
//
//   client, ports 40000 to 40063 --- port 0 [gateway] port 1 --- endpoint 11
//
// Time does not advance, except for paths that need it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "dataplane/pipeline/stages.hpp"
#include "tests/protocols/ends.hpp"

namespace penstock::perf {

using FrameBytes = std::vector<uint8_t>;

// One burst, and the result of each of its packets.
struct Step {
    NicPortId port;
    std::vector<FrameBytes> frames;  // limits::kBurstMax at most
    Verdict verdict = Verdict::Transmit;
    DropReason reason{};             // for Verdict::Drop
    std::optional<uint8_t> state{};  // of the packets' connections afterwards
};

// A path, as a round of bursts; all rounds are equal.
struct Path {
    std::string name;
    std::vector<Step> steps;
    std::vector<std::pair<stats::Counter, uint64_t>> counts{};  // increase of these counters per round
    // The worker's work after the stages is done and measured as well: waiting fragments are stored, released
    // ones follow, and packets that are too long are fragmented.
    bool is_disposed_of = false;
    bool time_passes = false;  // from burst to burst, so that packets differ in age
    // Before each round the idle timeout passes, so that the flows of the last round have expired.
    bool opens_flows = false;

    [[nodiscard]] uint64_t packets() const noexcept;
};

class Road {
 public:
    static constexpr uint16_t kFirstPort = 40'000;  // of the clients' flows, one for each packet of a burst
    static constexpr uint32_t kFlows = limits::kBurstMax;
    static constexpr uint16_t kTcpPort = 80, kUdpPort = 53, kSctpPort = 3868, kEmptyPort = 90, kKeptPort = 54,
                              kOtherPort = 55;
    static constexpr uint16_t kTcpEndpointPort = 9376, kUdpEndpointPort = 5353, kSctpEndpointPort = 13'868,
                              kKeptEndpointPort = 5454;
    static constexpr uint8_t kHost = 11;
    static constexpr uint32_t kClientTag = 0xc11e0001, kEndpointTag = 0xbac20002;

    struct Policy {
        bool passes_ip_options = true;
        bool answers_one_packet_only = false;  // the limit of answers is reached after the first packet
    };
    explicit Road(const test::Ends& ends) : Road(ends, Policy{}) {}
    Road(const test::Ends& ends, const Policy& policy);

    // Sends a frame through the gateway, outside of any measurement. Returns the frame that leaves; ends the
    // program if none does.
    FrameBytes sent(const FrameBytes& frame, NicPortId port);
    // The same, without a check of the result.
    void send(const FrameBytes& frame, NicPortId port);

    // The n-th flow's datagram as the endpoint receives it, and the endpoint's as the client receives it.
    [[nodiscard]] const FrameBytes& to_endpoint(uint32_t n) const { return to_endpoint_[n]; }
    [[nodiscard]] const FrameBytes& to_client(uint32_t n) const { return to_client_[n]; }
    // The n-th flow's TCP port as the endpoint sees it.
    [[nodiscard]] L4Port tcp_port_at_endpoint(uint32_t n) const { return tcp_ports_at_endpoint_[n]; }
    // The n-th flow's datagram to a Service with endpoints of the other family only, as one of them receives
    // it.
    [[nodiscard]] const FrameBytes& to_other_endpoint(uint32_t n) const { return to_other_endpoint_[n]; }

    // One round. `meter(work, packets)` calls work() once, which runs the stages for a burst of `packets`
    // packets. Returns an empty text if every packet ended as required, otherwise a description.
    template <typename Meter>
    [[nodiscard]] std::string drive(const Path& path, Meter&& meter) {
        begin(path);
        const std::vector<uint64_t> before = counts_of(path);
        for (uint32_t at = 0; at < path.steps.size() && wrong_.empty(); ++at) {
            const Step& step = path.steps[at];
            fill(path, at);
            meter(
                [&]() PENSTOCK_INLINE_LAMBDA {
                    pipeline::run_stages(context(), burst_);
                    if (path.is_disposed_of) {
                        dispose();
                    }
                },
                uint64_t{burst_.count});
            judge(path, step);
        }
        finish(path, before);
        return wrong_;
    }

 private:
    static constexpr uint16_t kBufferBytes = 2'176, kHeadroom = 128;  // an mbuf's data room and headroom
    // Steps whose packets are in separate buffers: a packet that waits in one is released by the next.
    static constexpr uint32_t kStepsApart = 2;

    [[nodiscard]] pipeline::WorkerContext& context() { return gateway_.worker(0); }
    void open_flows();
    void begin(const Path& path);
    [[nodiscard]] std::vector<uint64_t> counts_of(const Path& path) const;
    void fill(const Path& path, uint32_t at);
    PENSTOCK_NOINLINE void dispose();
    void seat(const pipeline::Burst& burst, uint32_t i);
    void cut(const pipeline::Burst& burst, uint32_t i);
    void judge(const Path& path, const Step& step);
    void finish(const Path& path, const std::vector<uint64_t>& before);

    test::Ends ends_;
    test::VirtualGateway gateway_;
    std::vector<FrameBytes> to_endpoint_, to_client_, to_other_endpoint_;
    std::vector<L4Port> tcp_ports_at_endpoint_;
    pipeline::Burst burst_, released_;
    std::vector<uint8_t> buffers_ =
        std::vector<uint8_t>(size_t{kStepsApart} * limits::kBurstMax * kBufferBytes);
    std::vector<uint16_t> lengths_ = std::vector<uint16_t>(size_t{kStepsApart} * limits::kBurstMax);
    std::vector<uint8_t> pieces_;  // pieces of a fragmented packet
    std::string wrong_;
};

}  // namespace penstock::perf
