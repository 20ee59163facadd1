// SPDX-License-Identifier: Apache-2.0
#include "dataplane/pipeline/rx.hpp"

#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_ring.h>

#include "dataplane/pipeline/tap.hpp"

namespace penstock::pipeline {
namespace {

using stats::Counter;

// Joins the segments of a frame that a NIC has split (rare, because pools are sized by the MTU). False: it is
// too long for its first buffer, and was dropped.
PENSTOCK_NOINLINE bool join_segments(WorkerContext& ctx, rte_mbuf* mbuf) noexcept {
    if (rte_pktmbuf_linearize(mbuf) == 0) {
        return true;
    }
    if (ctx.tap != nullptr) {
        ctx.tap->dropped(ctx, mbuf, {rte_pktmbuf_mtod(mbuf, const uint8_t*), mbuf->data_len},
                         DropReason::FrameTooLong);
    }
    rte_pktmbuf_free(mbuf);
    ctx.count()[DropReason::FrameTooLong].add(1);
    return false;
}

// Adds a received mbuf to the burst. The stages need one contiguous frame.
PENSTOCK_ALWAYS_INLINE void add_packet(WorkerContext& ctx, Burst& burst, rte_mbuf* mbuf,
                                       Arrival how) noexcept {
    if (mbuf->nb_segs > 1 && !join_segments(ctx, mbuf)) [[unlikely]] {
        return;
    }
    burst.add(mbuf, rte_pktmbuf_mtod(mbuf, uint8_t*), static_cast<uint16_t>(mbuf->data_len),
              static_cast<uint16_t>(mbuf->data_len + rte_pktmbuf_tailroom(mbuf)), how,
              rte_pktmbuf_headroom(mbuf));
}

// Preserved over handoff rings: the note occupies the other half of what the PMD wrote.
PENSTOCK_ALWAYS_INLINE uint16_t mark_of(const rte_mbuf& mbuf) noexcept {
    return (mbuf.ol_flags & RTE_MBUF_F_RX_FDIR_ID) == 0 ? uint16_t{0}
                                                        : static_cast<uint16_t>(mbuf.hash.fdir.hi);
}

}  // namespace

uint32_t receive(WorkerContext& ctx, WorkerIo& io, NicPortId port, uint16_t queue, Burst& burst) noexcept {
    PortIo& from = io.port[port.value];
    std::array<rte_mbuf*, limits::kBurstMax> mbufs;
    const uint16_t taken = rte_eth_rx_burst(from.dpdk_port, queue, mbufs.data(), io.burst);
    if (taken == 0) {
        return 0;
    }
    for (uint16_t i = 0; i < taken; ++i) {
        prefetch_read(rte_pktmbuf_mtod(mbufs[i], const void*));
    }
    burst.looks_first = ctx.ports[port.value].promises.flow_stays_on_queue;
    burst.was_handed = false;
    uint64_t bytes = 0;
    for (uint16_t i = 0; i < taken; ++i) {
        bytes += mbufs[i]->pkt_len;
        Arrival how{port, {}, mark_of(*mbufs[i])};
        how.note.receiver = ctx.self;
        how.note.ip_checksum_checked =
            from.rx_checksum_checked &&
            (mbufs[i]->ol_flags & RTE_MBUF_F_RX_IP_CKSUM_MASK) == RTE_MBUF_F_RX_IP_CKSUM_GOOD;
        add_packet(ctx, burst, mbufs[i], how);
    }
    ctx.count()[Counter::RxPackets].add(taken);
    ctx.count()[Counter::RxBytes].add(bytes);
    ctx.count(port).received.add(taken);
    return taken;
}

uint32_t receive_from_host(WorkerContext& ctx, WorkerIo& io, NicPortId port, Burst& burst) noexcept {
    rte_ring* const from_host = io.port[port.value].from_host;
    if (from_host == nullptr) {
        return 0;
    }
    std::array<rte_mbuf*, limits::kBurstMax> mbufs;
    const unsigned taken =
        rte_ring_dequeue_burst(from_host, reinterpret_cast<void**>(mbufs.data()), io.burst, nullptr);
    burst.looks_first = false;
    burst.was_handed = false;
    for (unsigned i = 0; i < taken; ++i) {
        Arrival how{port, {}, 0};
        how.note.receiver = ctx.self;
        how.note.from_host = true;
        add_packet(ctx, burst, mbufs[i], how);
    }
    if (taken > 0) {
        ctx.count()[Counter::FromHost].add(taken);
    }
    return taken;
}

void receive_ready_fragments(WorkerContext& ctx, Burst& burst) noexcept {
    burst.looks_first = false;
    burst.was_handed = false;
    while (ctx.fragments.has_ready() && burst.count < limits::kBurstMax) {
        ctx.fragments.take_ready([&](rte_mbuf* mbuf, NicPortId port, HandoffNote note) {
            add_packet(ctx, burst, mbuf, {port, note, 0});
        });
    }
}

uint32_t receive_handed(WorkerContext& ctx, WorkerIo& io, Burst& burst) noexcept {
    if (io.handoff_in == nullptr) {
        return 0;
    }
    std::array<rte_mbuf*, limits::kBurstMax> mbufs;
    const unsigned taken =
        rte_ring_dequeue_burst(io.handoff_in, reinterpret_cast<void**>(mbufs.data()), io.burst, nullptr);
    for (unsigned i = 0; i < taken; ++i) {
        prefetch_write(mbufs[i]);
    }
    for (unsigned i = 0; i < taken; ++i) {
        prefetch_write(rte_pktmbuf_mtod(mbufs[i], const void*));
    }
    burst.looks_first = true;
    burst.was_handed = true;
    for (unsigned i = 0; i < taken; ++i) {
        // The sending worker stored the NicPort in the field for the DPDK port, and its note in the hash's
        // user field.
        add_packet(ctx, burst, mbufs[i],
                   {NicPortId{static_cast<uint8_t>(mbufs[i]->port)},
                    HandoffNote::unpacked(mbufs[i]->hash.usr), mark_of(*mbufs[i])});
    }
    if (taken > 0) {
        ctx.count()[Counter::HandedIn].add(taken);
    }
    return taken;
}

}  // namespace penstock::pipeline
