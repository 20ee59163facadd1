// A gateway of one worker with open flows of each protocol, and bursts of one kind of packet that go through its real stages again and
// again. How that is measured, the caller says (drive()); whether every packet ended as its path says is judged here, so that no figure can
// be another path's.
//
//   client, ports 40000 to 40063 --- port 0 [gateway] port 1 --- endpoint 11
//
// Time stands still, but for paths that need it to pass.
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

// One burst, and how each of its packets ends.
struct Step {
    NicPortId port;
    std::vector<FrameBytes> frames;  // limits::kBurstMax at most
    Verdict verdict = Verdict::Transmit;
    DropReason reason{};             // where Drop
    std::optional<uint8_t> state{};  // of the packets' connections afterwards
};

// What a worker meets, as a round of bursts; every round is like the one before.
struct Path {
    std::string name;
    std::vector<Step> steps;
    std::vector<std::pair<stats::Counter, uint64_t>> counts{};  // what a round adds to these
    // What waits is seated, what is released follows, and what is too long is cut, as the worker does it behind the stages; and measured.
    bool is_disposed_of = false;
    bool time_passes = false;  // from burst to burst, so that an older packet is older
    // Before each round idle time passes, so that the flows of the last one are gone.
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
        bool answers_one_packet_only = false;  // the limit of answers is reached behind the first
    };
    explicit Road(const test::Ends& ends) : Road(ends, Policy{}) {}
    Road(const test::Ends& ends, const Policy& policy);

    // Through the gateway, outside of any measurement; what leaves. Ends the program where nothing does.
    FrameBytes sent(const FrameBytes& frame, NicPortId port);
    // The same, whatever becomes of it.
    void send(const FrameBytes& frame, NicPortId port);

    // The n-th flow's datagram as the endpoint gets it, and the endpoint's as the client does.
    [[nodiscard]] const FrameBytes& to_endpoint(uint32_t n) const { return to_endpoint_[n]; }
    [[nodiscard]] const FrameBytes& to_client(uint32_t n) const { return to_client_[n]; }
    // The n-th flow's port of TCP as the endpoint sees it.
    [[nodiscard]] L4Port tcp_port_at_endpoint(uint32_t n) const { return tcp_ports_at_endpoint_[n]; }
    // The n-th flow's datagram to a Service that has endpoints of the other family alone, as one of them gets it.
    [[nodiscard]] const FrameBytes& to_other_endpoint(uint32_t n) const { return to_other_endpoint_[n]; }

    // One round. `meter(work, packets)` calls work() once: the stages of a burst of so many. Empty where every packet ended as it should,
    // else what did not.
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
    // Steps whose packets are in buffers of their own: what waits in one is released by the next.
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
    std::vector<uint8_t> pieces_;  // of a packet that was cut
    std::string wrong_;
};

}  // namespace penstock::perf
