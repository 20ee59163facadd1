// SPDX-License-Identifier: Apache-2.0
#include "drivers/eal/mempool.hpp"

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>
#include <rte_mbuf_pool_ops.h>
#include <rte_mempool.h>

#include <algorithm>

#include "dataplane/base/limits.hpp"

namespace penstock::drivers {
namespace {

// Mbufs in an lcore's cache: eight bursts. The shared ring is accessed once in eight bursts, and the caches
// of 64 workers still are a small part of the pool. DPDK's own limit is 512.
constexpr uint32_t kCacheMbufs = 8 * limits::kBurstMax;
static_assert(kMempoolCacheMax == RTE_MEMPOOL_CACHE_MAX_SIZE && kCacheMbufs <= kMempoolCacheMax);
// A cache overflows to the ring at 1.5 times its size.
constexpr uint32_t kCacheHeldMax = kCacheMbufs + kCacheMbufs / 2;

// Some NICs take receive buffers in steps of 1 KB and round down (ixgbe's SRRCTL), so the room is rounded up
// to 1 KB. All PMDs are tested with 2 KB.
constexpr uint32_t kRoomStep = 1024;
constexpr uint32_t kRoomMin = RTE_MBUF_DEFAULT_DATAROOM;

// As rte_pktmbuf_pool_create(), with flags.
rte_mempool* create_pool(const std::string& name, const MempoolShape& shape, int socket, unsigned flags) {
    rte_pktmbuf_pool_private sizes{};
    sizes.mbuf_data_room_size = shape.data_room;
    rte_mempool* const pool = rte_mempool_create_empty(
        name.c_str(), shape.count, static_cast<unsigned>(sizeof(rte_mbuf)) + shape.data_room, shape.cache,
        sizeof(sizes), socket, flags);
    if (pool == nullptr) {
        return nullptr;
    }
    if (rte_mempool_set_ops_byname(pool, rte_mbuf_best_mempool_ops(), nullptr) != 0) {
        rte_mempool_free(pool);
        return nullptr;
    }
    rte_pktmbuf_pool_init(pool, &sizes);
    if (rte_mempool_populate_default(pool) < 0) {
        rte_mempool_free(pool);
        return nullptr;
    }
    rte_mempool_obj_iter(pool, rte_pktmbuf_init, nullptr);
    return pool;
}

unsigned flags_of(const MempoolShape& shape) {
    return shape.is_gapless && rte_eal_has_hugepages() == 0 ? RTE_MEMPOOL_F_NO_IOVA_CONTIG : 0;
}

}  // namespace

Result<MempoolShape> mempool_shape(const MempoolDemand& demand) {
    const uint32_t room =
        std::max(kRoomMin, (demand.frame_bytes_max + kRoomStep - 1) / kRoomStep * kRoomStep);
    const uint32_t data_room = room + RTE_PKTMBUF_HEADROOM;
    if (data_room > UINT16_MAX) {
        return fail(Errc::InvalidArgument, "frames of " + std::to_string(demand.frame_bytes_max) +
                                               " bytes do not fit in a packet buffer (64 KB)");
    }
    const uint32_t object = static_cast<uint32_t>(sizeof(rte_mempool_objhdr) + sizeof(rte_mbuf)) + data_room;
    if (demand.object_bytes_max != 0 && object > demand.object_bytes_max) {
        return fail(
            Errc::InvalidArgument,
            "packet buffers of " + std::to_string(object) +
                " bytes, required by the largest mtu of a port, exceed the " +
                std::to_string(demand.object_bytes_max) +
                " bytes that one of the ports accepts (net_af_xdp: one page, so an mtu of at most 3050)");
    }
    const uint32_t per_worker = kCacheHeldMax + 2 * limits::kBurstMax +
                                (demand.workers > 1 ? limits::kHandoffRing : 0) + limits::kPendingMax +
                                limits::kFragmentsWaitingMax;
    // To Linux, by PuntClass, and back.
    const uint32_t per_port =
        limits::kPuntLinkRing + limits::kPuntRoutingRing + limits::kPuntRing + limits::kPuntRing;
    // The twin I/O thread has a cache as well, and holds a burst in each direction.
    const uint32_t twin_io = kCacheHeldMax + 2 * limits::kBurstMax;
    const uint32_t wanted = demand.rx_descriptors + demand.tx_descriptors + demand.driver_held +
                            demand.workers * per_worker + demand.ports * per_port +
                            demand.tx_through * limits::kHandoffRing + twin_io;
    // Not rounded up to 2^n - 1, which the pool's ring could hold: an entry of the ring takes 8 bytes, a
    // buffer 2 to 10 KB.
    // net_af_xdp takes the buffers of a pool for adjacent. With gaps, the kernel would refuse those of the
    // last 40 % of the pool, and the receive queue would run dry.
    const bool for_af_xdp = demand.object_bytes_max != 0;
    return MempoolShape{.count = wanted,
                        .cache = kCacheMbufs,
                        .data_room = static_cast<uint16_t>(data_room),
                        .is_gapless = for_af_xdp && !demand.has_pci};
}

Status Mempools::add(int socket, const MempoolDemand& demand) {
    PENSTOCK_TRY(const auto shape, mempool_shape(demand));
    return add(socket, shape);
}

Status Mempools::add(int socket, const MempoolShape& shape) {
    const int where = socket == SOCKET_ID_ANY ? static_cast<int>(rte_socket_id()) : socket;
    if (const auto former = pools_.find(where); former != pools_.end()) {
        if (former->second.shape == shape) {
            return {};
        }
        rte_mempool_free(former->second.pool);
        pools_.erase(former);
    }
    const std::string name = "penstock_mbufs_" + std::to_string(where);
    rte_mempool* const pool = create_pool(name, shape, where, flags_of(shape));
    if (pool == nullptr) {
        const uint64_t bytes =
            uint64_t{shape.count} * (sizeof(rte_mempool_objhdr) + sizeof(rte_mbuf) + shape.data_room);
        return fail(Errc::Exhausted, "packet buffers: " + std::to_string(shape.count) + " of them need " +
                                         std::to_string(bytes >> 20) + " MB on NUMA node " +
                                         std::to_string(where) + ": " + rte_strerror(rte_errno) +
                                         " (raise --memory-mb)");
    }
    pools_[where] = {pool, shape};
    return {};
}

std::map<int, MempoolShape> Mempools::shapes() const {
    std::map<int, MempoolShape> out;
    for (const auto& [socket, pool] : pools_) {
        out[socket] = pool.shape;
    }
    return out;
}

Mempools::~Mempools() {
    for (const auto& [socket, pool] : pools_) {
        rte_mempool_free(pool.pool);
    }
}

rte_mempool* Mempools::on(int socket) const noexcept {
    const auto exact = pools_.find(socket);
    if (exact != pools_.end()) {
        return exact->second.pool;
    }
    return pools_.empty() ? nullptr : pools_.begin()->second.pool;
}

uint32_t Mempools::in_use() const noexcept {
    uint32_t total = 0;
    for (const auto& [socket, pool] : pools_) {
        total += rte_mempool_in_use_count(pool.pool);
    }
    return total;
}

std::vector<Mempools::Use> Mempools::use() const {
    std::vector<Use> out;
    for (const auto& [socket, pool] : pools_) {
        out.push_back({.name = pool.pool->name,
                       .buffers = pool.pool->size,
                       .in_use = rte_mempool_in_use_count(pool.pool)});
    }
    return out;
}

}  // namespace penstock::drivers
