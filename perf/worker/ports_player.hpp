// SPDX-License-Identifier: Apache-2.0
// Plays packets through a whole worker: mbufs of a mempool in the receive rings of two ports, receive(), the
// stages, dispose() with its transmit bursts, and the release of the sent mbufs. The same thread writes the
// packets and allocates their mbufs, outside the timed spans.
#pragma once

#include <rte_mbuf.h>

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "dataplane/pipeline/state/io.hpp"
#include "perf/pipeline/frames.hpp"
#include "perf/pipeline/player.hpp"
#include "perf/traffic/queue_port.hpp"

namespace penstock::perf {

// The lines of a packet when the worker receives it.
enum class Lines : uint8_t {
    Warm,  // in the first two levels of the cache, from where they were written
    // In the last-level cache only, as a NIC leaves them that writes there (DDIO). The batch is larger than
    // the second-level cache, so the later packets evict the earlier ones. The mbuf is read again before it
    // is received: the PMD has just written it.
    Evicted,
};

class PortsPlayer final : public Player {
 public:
    // Batches of Lines::Evicted. Two lines of an mbuf and one or two of a frame for each packet: 4 MiB of
    // lines, twice the largest second-level cache of a core.
    static constexpr uint32_t kEvictedBatch = 16'384;

    // `name`: of the ports, unique in the process. `pool` has at least kEvictedBatch mbufs.
    PortsPlayer(Gateway& gateway, uint64_t hz, const std::string& name, rte_mempool* pool);

    // Of the next batches.
    void set_lines(Lines lines) noexcept { lines_ = lines; }
    [[nodiscard]] static constexpr uint32_t batch_of(Lines lines) noexcept {
        return lines == Lines::Warm ? kFramesMax : kEvictedBatch;
    }

 protected:
    uint8_t* buffer(uint32_t i) override;
    void run_bursts(std::span<const Packet> packets, BurstClock& clock) override;
    [[nodiscard]] Left left(uint32_t i) const override;

 private:
    // Bytes of the longest frame that make_frame() writes, up to its last checksum.
    static constexpr uint32_t kFrameBytes = 80;

    void deliver(std::span<const Packet> packets, uint32_t first, uint32_t end);
    void serve(uint32_t packets) noexcept;
    // Moves the sent mbufs to sent_ and keeps a copy of their frames for check().
    void collect(std::span<const Packet> packets);
    [[nodiscard]] QueuePort& port(NicPortId id) noexcept { return id == Gateway::kUp ? up_ : cluster_; }

    rte_mempool* pool_;
    QueuePort up_, cluster_;
    pipeline::WorkerIo io_;
    pipeline::Burst burst_;
    Lines lines_ = Lines::Warm;
    std::vector<rte_mbuf*> mbufs_;  // of the batch
    std::vector<rte_mbuf*> sent_;
    std::vector<std::array<uint8_t, kFrameBytes>> frames_;  // of the batch, as they were sent
    std::vector<Left> left_;
};

}  // namespace penstock::perf
