// SPDX-License-Identifier: Apache-2.0
// Short-lived connections: the duration of a burst of first packets while a table fills, and the cost of a
// whole TCP connection of six packets on a worker whose table is half full of closed connections.
#include <algorithm>
#include <array>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "perf/harness/cycles.hpp"
#include "perf/harness/fingerprint.hpp"
#include "perf/harness/options.hpp"
#include "perf/harness/report.hpp"
#include "perf/pipeline/frames.hpp"
#include "perf/pipeline/gateway.hpp"
#include "perf/pipeline/player.hpp"

namespace penstock::perf {
namespace {

constexpr uint32_t kMillion = 1'000'000;
constexpr double kAimNew = 600;
// A million connections a second at 3 GHz.
constexpr double kG14 = 3'000;

// Fills an empty table to 90 % of its capacity by first packets alone; cycles for each.
double fill(uint32_t capacity, Protocol protocol) {
    Gateway gateway(IpFamily::V4, capacity, cycles_per_second());
    Player player(gateway, limits::kBurstMax, cycles_per_second());
    BurstClock clock;
    std::vector<Packet> packets;
    const uint32_t wanted = capacity / 10 * 9;
    for (uint32_t number = 0; number < wanted;) {
        packets.clear();
        for (; number < wanted && packets.size() < Player::kFramesMax; ++number) {
            packets.push_back({.key = gateway.client_tuple(number, protocol),
                               .tcp_flags = kSyn,
                               .outcome = Packet::Outcome::Opens});
        }
        player.play(packets, clock);
    }
    return clock.per_operation();
}

void measure_new(const Options& options, uint32_t capacity) {
    if (!fits_memory("setup", capacity, Gateway::memory_needed(capacity))) {
        return;
    }
    const std::string at = size_suffix(capacity);
    // A fill is a window of its own; large fills are long enough that few are needed.
    const uint32_t repetitions = capacity > kMillion ? 1 : options.plan.windows;
    double tcp = 0, udp = 0;
    for (uint32_t i = 0; i < repetitions; ++i) {
        const double one_tcp = fill(capacity, Protocol::Tcp), one_udp = fill(capacity, Protocol::Udp);
        tcp = i == 0 ? one_tcp : std::min(tcp, one_tcp);
        udp = i == 0 ? one_udp : std::min(udp, one_udp);
    }
    print_value(std::string("setup.tcp").append(at), tcp, "cycles");
    print_value(std::string("setup.udp").append(at), udp, "cycles");
    print_value(std::string("setup.udp.rate").append(at), static_cast<double>(cycles_per_second()) / udp,
                "per_second");
    print_aim_at_most(std::string("new").append(at), std::min(tcp, udp), kAimNew);
}

// Six packets: SYN, SYN-ACK, ACK, FIN, FIN, ACK. A batch has one packet of each of six groups of connections,
// each group one phase ahead of the next, so that no two packets of a batch are of one connection.
class ShortConnections {
 public:
    static constexpr uint32_t kPhases = 6;
    static constexpr uint32_t kGroup = Player::kFramesMax / kPhases;

    // Aging adds a second to every timeout, the maximum lag of last_seen.
    static constexpr uint64_t kStaySeconds = conn::Timeouts{}.tcp_closing_s + 1;

    // The virtual time advances fast enough that half the table is closed connections in their timeout.
    explicit ShortConnections(uint32_t capacity)
        : gateway_(IpFamily::V4, capacity, cycles_per_second()),
          player_(gateway_, limits::kBurstMax, cycles_per_second()),
          capacity_(capacity) {
        player_.set_ticks_per_packet(cycles_per_second() * kStaySeconds / (capacity / 2 * kPhases));
        // Until as many have expired as half the table contains. From then on the number of connections is
        // constant.
        BurstClock unused;
        while (player_.expired() < capacity / 2) {
            batch(unused);
        }
    }

    // Cycles of bursts and of expiry, for each connection. Measured over whole sweeps of the table, because
    // entries that were opened together are adjacent and expire together.
    BurstClock window(uint64_t budget_cycles) {
        const uint64_t batches_per_sweep =
            uint64_t{capacity_} / 2 * conn::kSweepPeriodMs / 1'000 / kStaySeconds / kGroup + 1;
        BurstClock packets;
        uint64_t batches = 0;
        const uint64_t expiry_before = player_.expiry_cycles(), expired_before = player_.expired();
        while (packets.cycles() < budget_cycles || batches % batches_per_sweep != 0) {
            batch(packets);
            ++batches;
        }
        const uint64_t expiry = player_.expiry_cycles() - expiry_before;
        const uint64_t connections = packets.operations() / kPhases;
        expired_share_ =
            static_cast<double>(player_.expired() - expired_before) / static_cast<double>(connections);
        expiry_share_ = static_cast<double>(expiry) / static_cast<double>(packets.cycles() + expiry);
        BurstClock whole;
        whole.add_all(packets.cycles() + expiry, connections);
        return whole;
    }

    [[nodiscard]] double fullness() {
        return static_cast<double>(gateway_.context().connections.size()) / capacity_;
    }
    [[nodiscard]] double expired_share() const { return expired_share_; }
    [[nodiscard]] double expiry_share() const { return expiry_share_; }

 private:
    struct Group {
        uint32_t first_number;
        std::array<Gateway::Binding, kGroup> bindings;
    };

    Packet packet(const Group& group, uint32_t i, uint32_t phase) const {
        const packet::FlowKey client = gateway_.client_tuple(group.first_number + i);
        if (phase == 0) {
            return {.key = client, .tcp_flags = kSyn, .outcome = Packet::Outcome::Opens};
        }
        static constexpr std::array<uint8_t, kPhases> kFlags = {kSyn,        kSyn | kAck, kAck,
                                                                kFin | kAck, kFin | kAck, kAck};
        const packet::FlowKey reply = gateway_.reply_tuple(group.bindings[i]);
        const bool from_client = phase != 1 && phase != 4;
        return {.key = from_client ? client : reply,
                .expected = from_client ? reply.reversed() : client.reversed(),
                .tcp_flags = kFlags[phase],
                .from_client = from_client};
    }

    void batch(BurstClock& clock) {
        groups_.push_front({.first_number = next_number_, .bindings = {}});
        next_number_ += kGroup;
        packets_.clear();
        for (uint32_t i = 0; i < kGroup; ++i) {
            for (uint32_t phase = 0; phase < groups_.size(); ++phase) {
                packets_.push_back(packet(groups_[phase], i, phase));
            }
        }
        player_.play(packets_, clock);
        const auto phases = static_cast<uint32_t>(groups_.size());
        for (uint32_t i = 0; i < kGroup; ++i) {
            groups_[0].bindings[i] = gateway_.binding_of(packets_[i * phases].leaves_as);
        }
        if (groups_.size() == kPhases) {
            groups_.pop_back();
        }
    }

    Gateway gateway_;
    Player player_;
    uint32_t capacity_;
    std::deque<Group> groups_;
    std::vector<Packet> packets_;
    uint32_t next_number_ = 0;
    double expired_share_ = 0, expiry_share_ = 0;
};

void measure_turnover(const Options& options, uint32_t capacity) {
    if (!fits_memory("turnover", capacity, Gateway::memory_needed(capacity))) {
        return;
    }
    const std::string at = size_suffix(capacity);
    ShortConnections connections(capacity);
    const std::array sides = {Side{std::string("turnover").append(at),
                                   [&](uint64_t budget) { return connections.window(budget); }}};
    const double cycles = interleave(sides, options.plan)[0].min;
    print_value(std::string("turnover.table").append(at), connections.fullness() * 100, "%");
    print_value(std::string("turnover.expired").append(at), connections.expired_share(), "per_connection");
    print_value(std::string("turnover.expiry_share").append(at), connections.expiry_share() * 100, "%");
    print_value(std::string("turnover.rate").append(at), static_cast<double>(cycles_per_second()) / cycles,
                "connections_per_second");
    print_gate_at_most(std::string("G14").append(at), cycles, kG14);
}

}  // namespace
}  // namespace penstock::perf

int main(int argc, char** argv) {
    using namespace penstock::perf;
    constexpr std::array<uint32_t, 3> kSizes = {64'000, kMillion, 10 * kMillion};
    constexpr std::array<uint32_t, 1> kQuickSizes = {64'000};
    const Options options = read_options(argc, argv, kSizes, kQuickSizes, {});
    print_fingerprint();
    for (const uint32_t capacity : options.sizes) {
        measure_new(options, capacity);
        measure_turnover(options, capacity);
    }
    return 0;
}
