// SPDX-License-Identifier: Apache-2.0
// Per-worker counters. Each row has one writer, its worker, and any number of readers, which sum the rows. An
// increment is therefore a plain add, and no cache line has two writers. PENSTOCK_COUNTERS is the single
// list: it generates the enum, the metric's name, the CLI line and docs/counters.md.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "dataplane/base/cpu.hpp"
#include "dataplane/base/ids.hpp"
#include "dataplane/base/limits.hpp"
#include "dataplane/base/verdict.hpp"

namespace penstock::stats {

// X(Enumerator, counter_name, meaning)
#define PENSTOCK_COUNTERS(X)                                                                                 \
    X(RxPackets, "rx_packets", "packets taken from receive queues")                                          \
    X(RxBytes, "rx_bytes", "bytes of these packets, Ethernet header included")                               \
    X(TxPackets, "tx_packets", "packets given to transmit queues")                                           \
    X(TxBytes, "tx_bytes", "bytes of these packets, Ethernet header included")                               \
    X(HandedOff, "handed_off", "packets given to the worker that owns their flow")                           \
    X(HandedIn, "handed_in", "packets taken from other workers")                                             \
    X(Punted, "punted", "packets given to Linux through the twin")                                           \
    X(FromHost, "from_host", "packets that Linux sent through the twin")                                     \
    X(ConnectionHits, "connection_hits", "packets that belonged to a known connection")                      \
    X(NewConnections, "new_connections", "connections set up")                                               \
    X(ClosedConnections, "closed_connections",                                                               \
      "connections removed: closed, idle past their timeout, reopened, or ended")                            \
    X(EvictedConnections, "evicted_connections",                                                             \
      "half-open, finished, brief or surplus connections removed: the table was full")                       \
    X(EndedConnections, "ended_connections", "connections ended because their endpoint or frontend is gone") \
    X(ResetProbes, "reset_probes",                                                                           \
      "ACKs sent to find out which RST a side of an ended TCP connection accepts")                           \
    X(LivenessProbes, "liveness_probes",                                                                     \
      "ACKs sent to check whether a TCP connection is alive after a FIN or a RST")                           \
    X(ResetsSent, "resets_sent", "RSTs and ABORTs sent to the sides of ended connections")                   \
    X(Rejected, "rejected", "answers sent instead of forwarding: RST, ABORT or ICMP port unreachable")       \
    X(IcmpErrorsTranslated, "icmp_errors_translated", "ICMP errors about a flow, translated and forwarded")  \
    X(IcmpErrorsSent, "icmp_errors_sent", "ICMP errors of the gateway's own: packet too big, time exceeded") \
    X(EchoReplies, "echo_replies", "echo requests to Services' addresses that the gateway answered")         \
    X(FragmentsForwarded, "fragments_forwarded", "fragments forwarded with the flow of their datagram")      \
    X(FragmentsHeld, "fragments_held", "fragments that waited for the first one of their datagram")          \
    X(FragmentsWaiting, "fragments_waiting",                                                                 \
      "fragments that wait for the first one of their datagram now (a level, not a count)")                  \
    X(FragmentedPackets, "fragmented_packets",                                                               \
      "packets sent in fragments, because they exceed the size that their path carries")                     \
    X(FragmentsMade, "fragments_made", "fragments that these packets were split into")                       \
    X(SegmentsMade, "segments_made",                                                                         \
      "probes, RSTs and ABORTs built in their own buffers, including those that could not be sent")          \
    X(AffinityHits, "affinity_hits", "new flows sent to their client's former backend by session affinity")  \
    X(AffinityMisses, "affinity_misses",                                                                     \
      "new flows of Services with affinity for which a backend was selected anew")                           \
    X(AffinityEvictions, "affinity_evictions", "affinity entries evicted for another client's entry")        \
    X(HeldForNextHop, "held_for_next_hop", "packets that waited for a next hop's address")                   \
    X(Polls, "polls", "rounds of the poll loop")                                                             \
    X(EmptyPolls, "empty_polls", "rounds without work")                                                      \
    X(BusyTicks, "busy_ticks", "TSC ticks spent in rounds with work")                                        \
    X(Sleeps, "sleeps", "times the worker slept because no packet had arrived for a while")                  \
    X(SleepTicks, "sleep_ticks", "TSC ticks slept")                                                          \
    X(AgingTicks, "aging_ticks", "TSC ticks spent searching for idle connections")                           \
    X(Connections, "connections", "connections now (a level, not a count)")                                  \
    X(ReclaimedSnatPorts, "reclaimed_snat_ports",                                                            \
      "connections removed for their SNAT port: all towards the endpoint were taken")                        \
    X(AdoptedConnections, "adopted_connections", "connections adopted from the former process at the start") \
    X(ConnectionsTakenOver, "connections_taken_over",                                                        \
      "connections of another gateway that continue here, taken over from their copies")                     \
    X(CopiesRefused, "copies_refused", "copies whose connection could not be taken over")                    \
    X(StraysForwarded, "strays_forwarded",                                                                   \
      "packets of other gateways' shares, forwarded to the gateway that serves them")                        \
    X(StraysReturned, "strays_returned",                                                                     \
      "packets served here although their share is another gateway's, because they came from that gateway")  \
    X(ArpReplies, "arp_replies", "ARP requests and probes for VIPs that a worker answered")                  \
    X(NeighbourAdvertisements, "neighbour_advertisements",                                                   \
      "neighbour solicitations for VIPs that a worker answered")                                             \
    X(VipConflicts, "vip_conflicts",                                                                         \
      "messages of other hosts on the link that claim a VIP which workers answer for")                       \
    X(BfdReceived, "bfd_received", "BFD control packets received for sessions of the workers")               \
    X(BfdSent, "bfd_sent", "BFD control packets sent")

enum class Counter : uint8_t {
#define PENSTOCK_X(name, counter, meaning) name,
    PENSTOCK_COUNTERS(PENSTOCK_X)
#undef PENSTOCK_X
};
inline constexpr size_t kCounters = 0
#define PENSTOCK_X(name, counter, meaning) +1
    PENSTOCK_COUNTERS(PENSTOCK_X)
#undef PENSTOCK_X
    ;

struct CounterText {
    std::string_view name;
    std::string_view meaning;
};
inline constexpr std::array<CounterText, kCounters> kCounterTexts{{
#define PENSTOCK_X(name, counter, meaning) {counter, meaning},
    PENSTOCK_COUNTERS(PENSTOCK_X)
#undef PENSTOCK_X
}};

// A number with one writer. Relaxed load and store compile to a plain add in memory; a reader never reads a
// partly written value.
template <typename Number>
class OneWriter {
 public:
    void add(Number n) noexcept {
        value_.store(value_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
    }
    void subtract(Number n) noexcept {
        value_.store(value_.load(std::memory_order_relaxed) - n, std::memory_order_relaxed);
    }
    void set(Number n) noexcept { value_.store(n, std::memory_order_relaxed); }
    [[nodiscard]] Number read() const noexcept { return value_.load(std::memory_order_relaxed); }

 private:
    std::atomic<Number> value_{0};
};
using Tally = OneWriter<uint64_t>;
// A number of connection table entries, which are numbered with 32 bits.
using Level = OneWriter<uint32_t>;

// The service ports that recently exhausted their SNAT ports. The row of a service port has no room for one
// more counter, and few service ports need it. A slot keeps the last service port that was written to it, and
// its stamp changes with each write. One writer, any number of readers.
class ExhaustionSlots {
 public:
    void note(ServiceId service) noexcept {
        std::atomic<uint64_t>& slot = slots_[service.value % kSlots];
        const uint64_t times = (slot.load(std::memory_order_relaxed) >> 32) + 1;
        slot.store(times << 32 | service.value, std::memory_order_relaxed);
    }
    // 0: never written. Otherwise the lower half is the service's id, and the upper half counts the writes to
    // the slot.
    [[nodiscard]] uint64_t stamp(size_t slot) const noexcept {
        return slots_[slot].load(std::memory_order_relaxed);
    }

    // Two service ports that share a slot alternate in it while both are short of ports, so a reader that
    // polls every second sees both.
    static constexpr size_t kSlots = 64;

 private:
    std::array<std::atomic<uint64_t>, kSlots> slots_{};
};

// The cost of one NicPort's queue selection for one worker. There are at most limits::kNicPortsMax of these
// rows.
// X(member, counter_name, meaning)
#define PENSTOCK_PORT_COUNTERS(X)                                                           \
    X(received, "port_received", "packets taken from the port's receive queues")            \
    X(handed_off, "port_handed_off", "of these, packets that another worker owned")         \
    X(handoff_lost, "port_handoff_lost",                                                    \
      "of those, packets dropped because the owner did not take them as fast as they came") \
    X(replies_misplaced, "port_replies_misplaced",                                          \
      "replies handed off that RSS or a flow rule should have delivered to their owner")

struct PortCounters {
#define PENSTOCK_X(member, counter, meaning) Tally member;
    PENSTOCK_PORT_COUNTERS(PENSTOCK_X)
#undef PENSTOCK_X
};
inline constexpr CounterText kPortCounterTexts[]{
#define PENSTOCK_X(member, counter, meaning) {counter, meaning},
    PENSTOCK_PORT_COUNTERS(PENSTOCK_X)
#undef PENSTOCK_X
};

// The counters of one worker as a whole.
struct alignas(kCacheLine) WorkerCounters {
    std::array<Tally, kCounters> counters;
    std::array<Tally, kDropReasons> drops;
    ExhaustionSlots exhausted;  // of SNAT ports
    std::array<PortCounters, limits::kNicPortsMax> ports;
    Tally& operator[](Counter counter) noexcept { return counters[static_cast<size_t>(counter)]; }
    const Tally& operator[](Counter counter) const noexcept { return counters[static_cast<size_t>(counter)]; }
    Tally& operator[](DropReason reason) noexcept { return drops[static_cast<size_t>(reason)]; }
    const Tally& operator[](DropReason reason) const noexcept { return drops[static_cast<size_t>(reason)]; }
};

// One service port on one worker: exactly one cache line.
struct alignas(kCacheLine) ServiceCounters {
    Tally new_flows;
    // By direction, forward first: an index costs less than a branch that half of all packets take.
    struct Passed {
        Tally packets;
        Tally bytes;  // IP bytes
    };
    std::array<Passed, 2> passed;
    Tally rejected;
    Tally dropped;      // new flows dropped silently
    Tally connections;  // a level

    [[nodiscard]] const Passed& forward() const noexcept { return passed[0]; }
    [[nodiscard]] const Passed& reverse() const noexcept { return passed[1]; }
};
static_assert(sizeof(ServiceCounters) == kCacheLine);

// One backend on one worker. Schedulers read `open` of all workers for each new flow, so four rows share a
// cache line.
struct BackendCounters {
    Tally new_flows;
    Level connections;  // entries in the table
    Level open;         // of these, half-open or established TCP, and all datagram flows (SCHED-003)
};
static_assert(sizeof(BackendCounters) == 16);

// All rows of one worker, indexed by id. The caller provides the memory, zeroed (limits.hpp sizes it).
struct CounterRows {
    WorkerCounters* worker = nullptr;
    std::span<ServiceCounters> services;
    std::span<BackendCounters> backends;
};

}  // namespace penstock::stats
