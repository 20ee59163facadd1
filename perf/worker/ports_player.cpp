// SPDX-License-Identifier: Apache-2.0
#include "perf/worker/ports_player.hpp"

#include <algorithm>
#include <cstring>

#include "dataplane/base/check.hpp"
#include "dataplane/pipeline/rx.hpp"
#include "dataplane/pipeline/stages.hpp"
#include "dataplane/pipeline/tx.hpp"
#include "perf/harness/cycles.hpp"

namespace penstock::perf {
namespace {

// The place of a packet in its batch, in a field of the mbuf that only applications use.
uint32_t& place_in(rte_mbuf& mbuf) noexcept {
    return mbuf.dynfield1[0];
}

NicPortId arrival_of(const Packet& packet) noexcept {
    return packet.from_client ? Gateway::kUp : Gateway::kCluster;
}

}  // namespace

PortsPlayer::PortsPlayer(Gateway& gateway, uint64_t hz, const std::string& name, rte_mempool* pool)
    : Player(gateway, hz, kEvictedBatch),
      pool_(pool),
      up_(name + "_up", 1, kEvictedBatch, pool),
      cluster_(name + "_cl", 1, kEvictedBatch, pool),
      mbufs_(kEvictedBatch),
      frames_(kEvictedBatch),
      left_(kEvictedBatch) {
    io_.ports = 2;
    for (const NicPortId id : {Gateway::kUp, Gateway::kCluster}) {
        pipeline::PortIo& io = io_.port[id.value];
        io.id = id;
        io.used = true;
        io.dpdk_port = port(id).id();
        io.rx_queues = 1;
    }
}

uint8_t* PortsPlayer::buffer(uint32_t i) {
    mbufs_[i] = rte_pktmbuf_alloc(pool_);
    PENSTOCK_CHECK(mbufs_[i] != nullptr);
    place_in(*mbufs_[i]) = i;
    return rte_pktmbuf_mtod(mbufs_[i], uint8_t*);
}

void PortsPlayer::run_bursts(std::span<const Packet> packets, BurstClock& clock) {
    const auto count = static_cast<uint32_t>(packets.size());
    std::fill_n(left_.begin(), count, Left{});
    const uint32_t at_once = lines_ == Lines::Warm ? kFramesMax : limits::kBurstMax;
    for (uint32_t first = 0; first < count; first += at_once) {
        const uint32_t end = std::min(first + at_once, count);
        deliver(packets, first, end);
        const uint64_t start = cycles_begin();
        serve(end - first);
        uint64_t cycles = cycles_end() - start;
        collect(packets);
        const uint64_t freeing = cycles_begin();
        for (rte_mbuf* mbuf : sent_) {
            rte_pktmbuf_free(mbuf);
        }
        cycles += cycles_end() - freeing;
        clock.add(cycles - std::min(cycles, empty_span_cycles()), end - first);
        advance(cycles, end - first);
    }
}

// The lengths are written here, as by a PMD, so the mbufs' first lines are in the cache.
void PortsPlayer::deliver(std::span<const Packet> packets, uint32_t first, uint32_t end) {
    for (uint32_t i = first; i < end; ++i) {
        mbufs_[i]->data_len = length(i);
        mbufs_[i]->pkt_len = length(i);
    }
    for (uint32_t i = first; i < end;) {
        const NicPortId arrival = arrival_of(packets[i]);
        uint32_t next = i + 1;
        while (next < end && arrival_of(packets[next]) == arrival) {
            ++next;
        }
        port(arrival).preload(0, std::span(mbufs_).subspan(i, next - i));
        i = next;
    }
}

// As in Worker::round(): each port in turn, burst after burst.
void PortsPlayer::serve(uint32_t packets) noexcept {
    pipeline::WorkerContext& context = gateway().context();
    begin_round();
    for (uint32_t taken = 0; taken < packets;) {
        for (const NicPortId id : {Gateway::kUp, Gateway::kCluster}) {
            if (const uint32_t received = pipeline::receive(context, io_, id, 0, burst_); received > 0) {
                pipeline::run_stages(context, burst_);
                pipeline::dispose(context, io_, burst_);
                taken += received;
            }
        }
    }
}

void PortsPlayer::collect(std::span<const Packet> packets) {
    sent_.resize(kEvictedBatch);
    uint32_t count = 0;
    for (const NicPortId egress : {Gateway::kUp, Gateway::kCluster}) {
        const uint32_t first = count;
        count += port(egress).take(0, std::span(sent_).subspan(first));
        for (uint32_t at = first; at < count; ++at) {
            const uint32_t i = place_in(*sent_[at]);
            std::memcpy(frames_[i].data(), rte_pktmbuf_mtod(sent_[at], const uint8_t*), kFrameBytes);
            left_[i] = {frames_[i].data(), egress == arrival_of(packets[i])};
        }
    }
    sent_.resize(count);
}

Player::Left PortsPlayer::left(uint32_t i) const {
    return left_[i];
}

}  // namespace penstock::perf
