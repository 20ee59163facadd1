// SPDX-License-Identifier: Apache-2.0
// Up to kBurstMax packets as parallel arrays: each stage is a pass over the few arrays it needs. A burst is
// filled by rx (or by a test, from plain bytes), passed through the stages, and emptied by disposal. Every
// packet ends in exactly one Verdict.
#pragma once

#include <array>
#include <cstdint>

#include "dataplane/base/check.hpp"
#include "dataplane/base/cpu.hpp"
#include "dataplane/base/ids.hpp"
#include "dataplane/base/limits.hpp"
#include "dataplane/base/verdict.hpp"
#include "dataplane/config/snapshot.hpp"
#include "dataplane/conn/table.hpp"
#include "dataplane/packet/parsed.hpp"
#include "dataplane/pipeline/fragments/fragment_table.hpp"
#include "dataplane/pipeline/state/candidates.hpp"
#include "dataplane/pipeline/state/handoff.hpp"

struct rte_mbuf;

namespace penstock::pipeline {

// Data about the arrival of a packet. Set by rx or handoff, before the first stage.
struct Arrival {
    NicPortId port;
    HandoffNote note;   // directly from the NIC: nothing tried, no ring crossed
    uint16_t mark = 0;  // set by a rule of the NIC, a hint (lb/marked_frontends.hpp); 0: none
};

// How a packet with Verdict::Split leaves.
struct SplitNote {
    uint16_t mtu;        // of the link, in IP bytes
    bool waits = false;  // for the next hop in next_hop; otherwise the Ethernet header is already written
};

// Some packets of a burst, by index and in order, so that a stage visits only its own packets.
struct PacketList {
    uint32_t count = 0;
    std::array<uint8_t, limits::kBurstMax> at;
    void add(uint32_t i) noexcept { at[count++] = static_cast<uint8_t>(i); }
};
static_assert(limits::kBurstMax <= 256);

struct Burst {
    uint32_t count = 0;
    // All packets are looked up on this worker before their owner is computed. Set by rx; a first fragment
    // resets it. False: conn_lookup decides for each packet.
    bool looks_first = false;
    bool was_handed = false;                            // all packets came from other workers. Set by rx
    std::array<rte_mbuf*, limits::kBurstMax> handle{};  // opaque here; null in tests without EAL
    std::array<uint8_t*, limits::kBurstMax> data{};     // first byte of the Ethernet header
    std::array<uint16_t, limits::kBurstMax> length{};   // frame bytes; an answer built in place may change it
    std::array<uint16_t, limits::kBurstMax> capacity{};  // bytes from data to the end of its buffer
    std::array<uint16_t, limits::kBurstMax> headroom{};  // bytes in front of data that belong to its buffer
    std::array<Arrival, limits::kBurstMax> arrival{};

    std::array<packet::Parsed, limits::kBurstMax> parsed{};
    std::array<Verdict, limits::kBurstMax> verdict{};
    std::array<DropReason, limits::kBurstMax> reason{};  // if verdict is Drop
    std::array<uint64_t, limits::kBurstMax> hash{};  // of parsed.key, for Flow packets without a verdict yet
    PacketList flows;                                // flow packets left by classify to the connection table
    PacketList host_flows;  // same for packets sent by Linux; conn_lookup appends them to flows
    PacketList fragments;   // fragments that may belong to a flow (fragments.hpp)
    std::array<DatagramIndex, limits::kBurstMax>
        datagram{};  // of the fragments; unset if the table has no room for it
    std::array<SlotIndex, limits::kBurstMax> slot{};  // if verdict is Await
    PacketList icmp;       // ICMP packets, and ARP about VIPs, left by classify to serve_icmp
    PacketList moved;      // packets with a frame that now begins elsewhere in its buffer (other_family.hpp)
    PacketList hits;       // packets of known connections, from conn_lookup on
    PacketList misses;     // packets of no known connection, for new_flow
    PacketList reopening;  // hits of a finished connection that they reopen (Tracked::Reopens), for new_flow
    std::array<conn::Found, limits::kBurstMax> found{};  // of the hits
    std::array<Candidates, limits::kBurstMax>
        candidates{};  // possible owners of the flow; empty if not computed yet
    std::array<WorkerId, limits::kBurstMax> handoff_to{};  // if verdict is Handoff; arrival's note goes along
    std::array<bool, limits::kBurstMax>
        answers{};  // the packet was turned into our answer to its sender; it has no connection
    std::array<NicPortId, limits::kBurstMax> egress{};  // if verdict is Transmit, Split or Hold
    std::array<IpAddr, limits::kBurstMax> next_hop{};   // if verdict is Hold
    std::array<SplitNote, limits::kBurstMax> split;     // if verdict is Split

    // Adds a packet and returns its index. The caller ensures that there is room. A packet without headroom
    // is not converted to IPv6.
    uint32_t add(rte_mbuf* mbuf, uint8_t* first_byte, uint16_t frame_length, uint16_t buffer_capacity,
                 Arrival how, uint16_t buffer_headroom = 0) noexcept {
        PENSTOCK_ASSERT(count < limits::kBurstMax);
        const uint32_t i = count++;
        handle[i] = mbuf;
        data[i] = first_byte;
        length[i] = frame_length;
        capacity[i] = buffer_capacity;
        headroom[i] = buffer_headroom;
        arrival[i] = how;
        verdict[i] = Verdict::None;
        answers[i] = false;
        candidates[i].count = 0;
        return i;
    }
    void drop(uint32_t i, DropReason why) noexcept {
        verdict[i] = Verdict::Drop;
        reason[i] = why;
    }
    // A packet from the host that belongs to no flow: it leaves unchanged, by the port whose twin Linux sent
    // it through.
    void relay(uint32_t i) noexcept {
        verdict[i] = Verdict::Transmit;
        egress[i] = arrival[i].port;
    }
    [[nodiscard]] bool under_way(uint32_t i) const noexcept { return verdict[i] == Verdict::None; }
};

// The frontend of packet i if its mark names it; null: unknown, use the table.
[[nodiscard]] PENSTOCK_ALWAYS_INLINE const lb::FrontendRow* marked_frontend(const config::Snapshot& snapshot,
                                                                            const Burst& burst,
                                                                            uint32_t i) noexcept {
    if (snapshot.marked == nullptr) [[likely]] {
        return nullptr;
    }
    const packet::FlowKey& key = burst.parsed[i].key;
    return snapshot.marked->find(burst.arrival[i].mark, key.destination, key.destination_port, key.protocol);
}

}  // namespace penstock::pipeline
