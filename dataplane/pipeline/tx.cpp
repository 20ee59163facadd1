// SPDX-License-Identifier: Apache-2.0
#include "dataplane/pipeline/tx.hpp"

#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_ring.h>

#include <cstring>

#include "dataplane/packet/fragment_ipv4.hpp"
#include "dataplane/packet/fragment_ipv6.hpp"
#include "dataplane/packet/punt_class.hpp"
#include "dataplane/packet/rewrite.hpp"
#include "dataplane/packet/wire.hpp"
#include "dataplane/pipeline/bfd.hpp"
#include "dataplane/pipeline/state/one_egress.hpp"
#include "dataplane/pipeline/tap.hpp"

namespace penstock::pipeline {
namespace {

using stats::Counter;

ByteView frame_of(const rte_mbuf* mbuf) noexcept {
    return {rte_pktmbuf_mtod(mbuf, const uint8_t*), mbuf->data_len};
}

PENSTOCK_NOINLINE void show_drop(WorkerContext& ctx, const rte_mbuf* mbuf, DropReason reason) noexcept {
    ctx.tap->dropped(ctx, mbuf, frame_of(mbuf), reason);
}

void free_and_count(WorkerContext& ctx, rte_mbuf* const* packets, uint32_t count,
                    DropReason reason) noexcept {
    for (uint32_t i = 0; i < count; ++i) {
        if (ctx.tap != nullptr) [[unlikely]] {
            show_drop(ctx, packets[i], reason);
        }
        rte_pktmbuf_free(packets[i]);
    }
    ctx.count()[reason].add(count);
}

uint64_t bytes_of(rte_mbuf* const* packets, uint32_t count) noexcept {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < count; ++i) {
        bytes += packets[i]->pkt_len;
    }
    return bytes;
}

// Returns the number of packets that the queue has accepted. `bytes`: of all packets.
PENSTOCK_ALWAYS_INLINE uint32_t give_to_queue(WorkerContext& ctx, const PortIo& port, rte_mbuf** packets,
                                              uint32_t count, uint64_t bytes) noexcept {
    if (port.tx_through != nullptr) {
        return rte_ring_enqueue_burst(port.tx_through, reinterpret_cast<void**>(packets), count, nullptr);
    }
    const uint32_t sent =
        rte_eth_tx_burst(port.dpdk_port, port.tx_queue, packets, static_cast<uint16_t>(count));
    ctx.count()[Counter::TxPackets].add(sent);
    ctx.count()[Counter::TxBytes].add(bytes - bytes_of(packets + sent, count - sent));
    return sent;
}

PENSTOCK_NOINLINE void flush_watched(WorkerContext& ctx, PortIo& port) noexcept {
    OutBuffer& out = port.tx;
    uint32_t sent = 0;
    if (!port.removed) {
        ctx.tap->leaving(ctx, port.id, out.packets.data(), out.count, frame_of);
        sent =
            give_to_queue(ctx, port, out.packets.data(), out.count, bytes_of(out.packets.data(), out.count));
        ctx.tap->sent(sent);
    }
    free_and_count(ctx, out.packets.data() + sent, out.count - sent,
                   port.removed ? DropReason::PortRemoved : DropReason::TxQueueFull);
    out.count = 0;
}

PENSTOCK_NOINLINE void flush_tx(WorkerContext& ctx, PortIo& port) noexcept {
    OutBuffer& out = port.tx;
    if (out.count == 0) {
        return;
    }
    if (port.watched) [[unlikely]] {
        return flush_watched(ctx, port);
    }
    const uint32_t sent =
        give_to_queue(ctx, port, out.packets.data(), out.count, bytes_of(out.packets.data(), out.count));
    free_and_count(ctx, out.packets.data() + sent, out.count - sent, DropReason::TxQueueFull);
    out.count = 0;
}

PENSTOCK_NOINLINE void flush_punts(WorkerContext& ctx, PortIo& port) noexcept {
    for (size_t punt_class = 0; punt_class < kPuntClasses; ++punt_class) {
        OutBuffer& out = port.punt[punt_class];
        if (out.count == 0) {
            continue;
        }
        const uint32_t taken = rte_ring_enqueue_burst(
            port.to_host[punt_class], reinterpret_cast<void**>(out.packets.data()), out.count, nullptr);
        ctx.count()[Counter::Punted].add(taken);
        free_and_count(ctx, out.packets.data() + taken, out.count - taken,
                       punt_class == static_cast<size_t>(PuntClass::Other) ? DropReason::PuntRingFull
                                                                           : DropReason::PuntControlFull);
        out.count = 0;
    }
    port.punts = 0;
}

void flush_handoff(WorkerContext& ctx, WorkerIo& io, uint32_t worker) noexcept {
    OutBuffer& out = io.handoff[worker];
    if (out.count == 0) {
        return;
    }
    const uint32_t taken = rte_ring_enqueue_burst(
        io.handoff_to[worker], reinterpret_cast<void**>(out.packets.data()), out.count, nullptr);
    ctx.count()[Counter::HandedOff].add(taken);
    for (uint32_t i = taken; i < out.count; ++i) {
        ctx.count(NicPortId{static_cast<uint8_t>(out.packets[i]->port)})
            .handoff_lost.add(1);  // written there by dispose()
    }
    free_and_count(ctx, out.packets.data() + taken, out.count - taken, DropReason::HandoffRingFull);
    out.count = 0;
}

PENSTOCK_ALWAYS_INLINE void queue_for(WorkerContext& ctx, PortIo& port, rte_mbuf* mbuf) noexcept {
    port.tx.packets[port.tx.count++] = mbuf;
    if (port.tx.count == port.tx.packets.size()) {
        flush_tx(ctx, port);
    }
}

void queue_for_host(WorkerContext& ctx, PortIo& port, rte_mbuf* mbuf, PuntClass punt_class) noexcept {
    OutBuffer& out = port.punt[static_cast<size_t>(punt_class)];
    out.packets[out.count++] = mbuf;
    ++port.punts;
    if (out.count == out.packets.size()) {
        flush_punts(ctx, port);
    }
}

void flush_all(WorkerContext& ctx, WorkerIo& io) noexcept {
    for (uint32_t p = 0; p < io.ports; ++p) {
        flush_tx(ctx, io.port[p]);
        if (io.port[p].punts > 0) {
            flush_punts(ctx, io.port[p]);
        }
    }
    for (uint32_t w = 0; w < ctx.workers; ++w) {
        flush_handoff(ctx, io, w);
    }
}

// The destination of the packet in `mbuf`, which is untagged.
IpAddr destination_of(const rte_mbuf* mbuf) noexcept {
    const uint8_t* const frame = rte_pktmbuf_mtod(mbuf, const uint8_t*);
    const uint8_t* const header = frame + sizeof(packet::EthernetHeader);
    if (packet::ether_type(frame) == packet::kEtherTypeIpv4) {
        return IpAddr::v4(load<Be32>(header + offsetof(packet::Ipv4Header, destination)));
    }
    return IpAddr::v6(load<std::array<uint8_t, 16>>(header + offsetof(packet::Ipv6Header, destination)));
}

// There is no room to hold the packet in `mbuf`, and no other packet waits for its next hop: the next hop is
// resolved for later packets.
PENSTOCK_NOINLINE void ask_unheld(WorkerContext& ctx, const rte_mbuf* mbuf, NicPortId egress,
                                  const IpAddr& next_hop) noexcept {
    const bool is_configured =
        next_hop != destination_of(mbuf) || ctx.snapshot->services->may_be_endpoint(next_hop);
    const auto kind = is_configured ? UnheldAsks::Kind::Configured : UnheldAsks::Kind::Host;
    if (ctx.unheld_asks.ask(kind, egress, next_hop, ctx.owner.client_hash(next_hop), ctx.now)) {
        ctx.resolve->push({egress, next_hop});
    }
}

// Holds a packet until its next hop is resolved, and requests the resolution unless that has been done.
void hold(WorkerContext& ctx, rte_mbuf* mbuf, NicPortId egress, const IpAddr& next_hop) noexcept {
    switch (ctx.pending.hold(mbuf, egress, next_hop, ctx.now)) {
        case route::HoldResult::HeldFirst:
            // queue full: the packet's retransmission requests it again
            ctx.resolve->push({egress, next_hop});
            [[fallthrough]];
        case route::HoldResult::Held:
            ctx.count()[Counter::HeldForNextHop].add(1);
            break;
        case route::HoldResult::FullFirst:
            ask_unheld(ctx, mbuf, egress, next_hop);
            [[fallthrough]];
        case route::HoldResult::Full:
            rte_pktmbuf_free(mbuf);
            ctx.count()[DropReason::PendingFull].add(1);
            break;
    }
}

// Splits the packet into fragments, in buffers of its own pool: a buffer that held the whole packet can hold
// a fragment. The first fragment reuses the packet's buffer and is written last. Returns the number of
// fragments; 0: no buffers for all of them, and the packet is unchanged.
template <typename Fragments>
uint32_t split(rte_mbuf* mbuf, uint16_t l3_offset, const Fragments& fragments,
               std::array<rte_mbuf*, packet::kFragmentsMax>& made) noexcept {
    if (fragments.count() > 1 &&
        rte_pktmbuf_alloc_bulk(mbuf->pool, made.data() + 1, fragments.count() - 1) != 0) {
        return 0;
    }
    made[0] = mbuf;
    const uint8_t* const frame = rte_pktmbuf_mtod(mbuf, const uint8_t*);
    for (uint32_t number = fragments.count(); number-- > 0;) {
        const auto fragment = fragments.at(number);
        auto* const to = rte_pktmbuf_mtod(made[number], uint8_t*);
        // The payload of the first fragment stays in place, because its header is as long as the packet's.
        if (number > 0) {
            std::memcpy(to, frame, l3_offset);
            std::memcpy(to + l3_offset + fragment.header_bytes, frame + l3_offset + fragment.payload_at,
                        fragment.payload_bytes);
        }
        std::memcpy(to + l3_offset, fragment.header.data(), fragment.header_bytes);
        made[number]->data_len = static_cast<uint16_t>(l3_offset + fragment.bytes());
        made[number]->pkt_len = made[number]->data_len;
    }
    return fragments.count();
}

// Sends packet i in fragments made by `Fragments`, or drops it as a whole.
template <typename Fragments>
void send_cut(WorkerContext& ctx, WorkerIo& io, const Burst& burst, uint32_t i) noexcept {
    rte_mbuf* mbuf = burst.handle[i];
    mbuf->ol_flags = 0;
    const uint16_t l3_offset = burst.parsed[i].l3_offset;
    const auto fragments =
        Fragments::of(ByteView(burst.data[i], burst.length[i]).subspan(l3_offset), burst.split[i].mtu);
    if (!fragments) {
        return free_and_count(ctx, &mbuf, 1, DropReason::PacketTooBig);
    }
    std::array<rte_mbuf*, packet::kFragmentsMax> made;
    const uint32_t count = split(mbuf, l3_offset, *fragments, made);
    if (count == 0) {
        return free_and_count(ctx, &mbuf, 1, DropReason::NoBuffer);
    }
    for (uint32_t number = 0; number < count; ++number) {
        burst.split[i].waits ? hold(ctx, made[number], burst.egress[i], burst.next_hop[i])
                             : queue_for(ctx, io.port[burst.egress[i].value], made[number]);
    }
    ctx.count()[Counter::FragmentedPackets].add(1);
    ctx.count()[Counter::FragmentsMade].add(count);
}

PENSTOCK_NOINLINE void send_in_fragments(WorkerContext& ctx, WorkerIo& io, const Burst& burst,
                                         uint32_t i) noexcept {
    packet::ether_type(burst.data[i]) == packet::kEtherTypeIpv4
        ? send_cut<packet::Ipv4Fragments>(ctx, io, burst, i)
        : send_cut<packet::Ipv6Fragments>(ctx, io, burst, i);
}

// Sets the frames' new beginnings after conversion.
PENSTOCK_NOINLINE void note_places(const Burst& burst) noexcept {
    for (uint32_t at = 0; at < burst.moved.count; ++at) {
        const uint32_t i = burst.moved.at[at];
        burst.handle[i]->data_off =
            static_cast<uint16_t>(burst.data[i] - static_cast<const uint8_t*>(burst.handle[i]->buf_addr));
    }
}

void hand_over(WorkerContext& ctx, WorkerIo& io, const Burst& burst, uint32_t i, WorkerId to,
               HandoffNote note) noexcept {
    rte_mbuf* mbuf = burst.handle[i];
    if (note.handoffs >= handoffs_max(ctx.workers)) {
        return free_and_count(ctx, &mbuf, 1, DropReason::HandoffLoop);
    }
    if (note.handoffs == 0 && !note.from_host) {
        ctx.count(burst.arrival[i].port).handed_off.add(1);
    }
    mbuf->port = burst.arrival[i].port.value;
    mbuf->hash.usr = note.crossing().packed();
    OutBuffer& out = io.handoff[to.value];
    out.packets[out.count++] = mbuf;
}

// False: the packet is for Linux. The worker of the sessions gets packets from all others, and must look at
// them itself: they belong to no flow, so no worker owns them.
PENSTOCK_NOINLINE bool take_as_bfd(WorkerContext& ctx, WorkerIo& io, const Burst& burst,
                                   uint32_t i) noexcept {
    switch (take_bfd(ctx, ByteView(burst.data[i], burst.length[i]), burst.parsed[i], burst.arrival[i].port)) {
        case BfdTake::Other:
            return false;
        case BfdTake::HandOver: {
            HandoffNote note = burst.arrival[i].note;
            note.tried = kBackFromMoved;
            hand_over(ctx, io, burst, i, kBfdWorker, note);
            return true;
        }
        case BfdTake::Taken:
            rte_pktmbuf_free(burst.handle[i]);
            return true;
    }
    return false;
}

// Executes any verdict except Transmit.
PENSTOCK_NOINLINE void dispose_unsent(WorkerContext& ctx, WorkerIo& io, const Burst& burst,
                                      uint32_t i) noexcept {
    rte_mbuf* mbuf = burst.handle[i];
    switch (burst.verdict[i]) {
        case Verdict::Transmit:
            break;
        case Verdict::Split:
            send_in_fragments(ctx, io, burst, i);
            break;
        case Verdict::Punt:
            if (ctx.bfd == nullptr || !take_as_bfd(ctx, io, burst, i)) {
                queue_for_host(
                    ctx, io.port[burst.arrival[i].port.value], mbuf,
                    packet::punt_class_of(ByteView(burst.data[i], burst.length[i]), burst.parsed[i]));
            }
            break;
        case Verdict::Handoff:
            hand_over(ctx, io, burst, i, burst.handoff_to[i], burst.arrival[i].note);
            break;
        case Verdict::Hold:
            mbuf->ol_flags = 0;
            hold(ctx, mbuf, burst.egress[i], burst.next_hop[i]);
            break;
        case Verdict::Await:
            ctx.fragments.fill(burst.slot[i], mbuf, burst.arrival[i].port, burst.arrival[i].note);
            break;
        case Verdict::Drop:
            free_and_count(ctx, &mbuf, 1, burst.reason[i]);
            break;
        case Verdict::None:
            free_and_count(ctx, &mbuf, 1, DropReason::NoVerdict);
            break;
    }
}

// A stage has changed the length if an answer was built in place, or a tag or trailer was removed.
PENSTOCK_ALWAYS_INLINE void note_length(rte_mbuf& mbuf, uint16_t length) noexcept {
    if (length != mbuf.data_len) {
        mbuf.data_len = length;
        mbuf.pkt_len = length;
    }
}

// Sends a burst that leaves_by_one_port() from its own array. The port's buffer is empty between bursts.
void send_whole(WorkerContext& ctx, const PortIo& port, Burst& burst) noexcept {
    PENSTOCK_ASSERT(port.tx.count == 0);
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < burst.count; ++i) {
        rte_mbuf& mbuf = *burst.handle[i];
        note_length(mbuf, burst.length[i]);
        mbuf.ol_flags = 0;
        bytes += burst.length[i];
    }
    const uint32_t sent = give_to_queue(ctx, port, burst.handle.data(), burst.count, bytes);
    if (sent < burst.count) [[unlikely]] {
        free_and_count(ctx, burst.handle.data() + sent, burst.count - sent, DropReason::TxQueueFull);
    }
}

}  // namespace

void dispose(WorkerContext& ctx, WorkerIo& io, Burst& burst) noexcept {
    if (burst.moved.count > 0) [[unlikely]] {
        note_places(burst);
    }
    if (leaves_by_one_port(burst)) [[likely]] {
        if (const PortIo& port = io.port[burst.egress[0].value]; !port.watched) [[likely]] {
            send_whole(ctx, port, burst);
            burst.count = 0;
            return;
        }
    }
    for (uint32_t i = 0; i < burst.count; ++i) {
        rte_mbuf* mbuf = burst.handle[i];
        note_length(*mbuf, burst.length[i]);
        if (burst.verdict[i] == Verdict::Transmit) [[likely]] {
            mbuf->ol_flags = 0;  // receive flags have another meaning on transmit
            queue_for(ctx, io.port[burst.egress[i].value], mbuf);
        } else if (burst.verdict[i] == Verdict::Handoff) {
            hand_over(ctx, io, burst, i, burst.handoff_to[i], burst.arrival[i].note);
        } else {
            dispose_unsent(ctx, io, burst, i);
        }
    }
    burst.count = 0;
    flush_all(ctx, io);
}

void release_pending(WorkerContext& ctx, WorkerIo& io) noexcept {
    ctx.pending.take_ready(*ctx.snapshot->routes, [&](rte_mbuf* mbuf, const route::NextHop& hop) {
        packet::set_ethernet(std::span(rte_pktmbuf_mtod(mbuf, uint8_t*), mbuf->data_len),
                             ctx.ports[hop.egress.value].mac, hop.neighbour->mac);
        ctx.neighbour_use.note(hop.neighbour->id, ctx.now_s);
        queue_for(ctx, io.port[hop.egress.value], mbuf);
    });
    ctx.pending.expire(ctx.now,
                       [&](rte_mbuf* mbuf) { free_and_count(ctx, &mbuf, 1, DropReason::NextHopUnresolved); });
    ctx.pending.ask_again(
        ctx.now, [&](NicPortId egress, const IpAddr& next_hop) { ctx.resolve->push({egress, next_hop}); });
    flush_all(ctx, io);
}

void send_at_once(WorkerContext& ctx, WorkerIo& io, NicPortId egress, rte_mbuf* mbuf) noexcept {
    queue_for(ctx, io.port[egress.value], mbuf);
    flush_tx(ctx, io.port[egress.value]);
}

void expire_fragments(WorkerContext& ctx) noexcept {
    ctx.fragments.expire(ctx.now,
                         [&](rte_mbuf* mbuf) { free_and_count(ctx, &mbuf, 1, DropReason::FragmentExpired); });
}

void send_own_segments(WorkerContext& ctx, WorkerIo& io) noexcept {
    OwnSegments& own = ctx.own_segments;
    for (uint32_t i = 0; i < own.count; ++i) {
        const OwnSegment& segment = own.at[i];
        rte_mbuf* mbuf = rte_pktmbuf_alloc(io.own_buffers);
        if (mbuf == nullptr) {
            ctx.count()[DropReason::NoBuffer].add(own.count - i);
            break;
        }
        std::memcpy(rte_pktmbuf_append(mbuf, segment.length), segment.frame.data(), segment.length);
        segment.to_host ? queue_for_host(ctx, io.port[segment.egress.value], mbuf, PuntClass::Other)
                        : queue_for(ctx, io.port[segment.egress.value], mbuf);
    }
    own.count = 0;
    flush_all(ctx, io);
}

uint32_t send_for_others(WorkerContext& ctx, WorkerIo& io) noexcept {
    uint32_t moved = 0;
    for (uint32_t p = 0; p < io.ports; ++p) {
        PortIo& port = io.port[p];
        if (port.tx_for_others == nullptr) {
            continue;
        }
        std::array<rte_mbuf*, limits::kBurstMax> mbufs;
        const unsigned taken =
            rte_ring_dequeue_burst(port.tx_for_others, reinterpret_cast<void**>(mbufs.data()),
                                   static_cast<unsigned>(mbufs.size()), nullptr);
        for (unsigned i = 0; i < taken; ++i) {
            queue_for(ctx, port, mbufs[i]);
        }
        moved += taken;
        flush_tx(ctx, port);
    }
    return moved;
}

}  // namespace penstock::pipeline
