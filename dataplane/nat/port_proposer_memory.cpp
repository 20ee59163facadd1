// SPDX-License-Identifier: Apache-2.0
// The memory of a port proposer: how many pools and maps a worker needs, and where they are placed.
#include <algorithm>
#include <cstring>
#include <string>

#include "dataplane/base/limits.hpp"
#include "dataplane/nat/port_proposer.hpp"

namespace penstock::nat {
namespace {

// One more than a connection table can hold (pipeline/state/context.hpp).
constexpr uint32_t kConnectionsMax = (1U << 28) + 1;

// A worker that holds 10 million connections has more pools than endpoints can exist (limits::kBackendsMax);
// the one line per pool costs a connection 8 bytes. The minimum is for small tables: their few connections
// may all go to different endpoints. In a very small table, four pools per connection leave no set short.
constexpr uint32_t kConnectionsPerPool = 8;
constexpr uint32_t kPoolsMin = 4'096;
constexpr uint32_t kPoolsPerConnectionMax = 4;
static_assert(10'000'000 / kConnectionsPerPool > limits::kBackendsMax);

// Minimum number of live ports with which a pool keeps a map, however few words the map has. Fewer ports are
// found as quickly without a map, and they would also have to pay for the map's header.
constexpr uint32_t kMapFromMin = 16;

// Maps in addition to those that the live ports can claim, for pools with fewer live ports and many
// consecutive refusals. One spare map is enough for a pool always to get one; the others prevent pools from
// withdrawing maps from each other.
constexpr uint32_t kSpareMaps = 8;

// Number of workers that may share the blocks before a pool keeps a map with fewer live ports than the map
// has words: 64 / 8 is an eighth.
constexpr uint32_t kSharersOfWholeMap = 8;

}  // namespace

// The number of each structure, in the order in which they are placed in the memory.
struct PortProposer::Layout {
    // `sharers`: the number of workers among which the ports of a block are divided. With many sharers, a map
    // covers fewer ports and pays off earlier: from an eighth of them live.
    Layout(uint32_t connections, uint32_t blocks, uint32_t sharers) noexcept
        : sets((std::max(connections / kConnectionsPerPool,
                         std::min(connections, kPoolsMin / kPoolsPerConnectionMax) * kPoolsPerConnectionMax) +
                kPoolsPerSet - 1) /
               kPoolsPerSet),
          pools(sets * kPoolsPerSet + 1),
          map_from(
              std::max(blocks * kSharersOfWholeMap / std::max(sharers, kSharersOfWholeMap), kMapFromMin)),
          maps(connections / map_from + kSpareMaps),
          full_words((blocks + 63) / 64),
          map_stride(sizeof(PortMap) + (2 * full_words + blocks) * sizeof(uint64_t)) {}
    [[nodiscard]] size_t bytes() const noexcept {
        return sets * sizeof(PoolTags) + pools * sizeof(Pool) + maps * map_stride;
    }
    size_t sets, pools;
    uint32_t map_from;
    size_t maps, full_words, map_stride;
};

size_t PortProposer::memory_needed(uint32_t connections, PortRange range, uint32_t workers,
                                   const ReplyRules* rules) noexcept {
    if (connections == 0 || connections > kConnectionsMax) {
        return 0;
    }
    if (rules != nullptr && !rules->empty()) {
        return Layout(connections, PortShare(range, {0}, 1).blocks(), workers).bytes();
    }
    size_t most = 0;
    for (uint32_t worker = 0; worker < workers; ++worker) {
        most = std::max(
            most, Layout(connections, PortShare(range, {static_cast<uint8_t>(worker)}, workers).blocks(), 1)
                      .bytes());
    }
    return most;
}

Result<PortProposer> PortProposer::create(std::span<std::byte> memory, uint32_t connections, PortRange range,
                                          WorkerId self, uint32_t workers, const HashKey& secret,
                                          const ReplyRules* rules) {
    if (workers == 0 || workers > limits::kWorkersMax || self.value >= workers) {
        return fail(Errc::InvalidArgument, "SNAT ports: worker number " + std::to_string(self.value) +
                                               " is invalid: the number of workers is " +
                                               std::to_string(workers));
    }
    const size_t needed = memory_needed(connections, range, workers, rules);
    if (needed == 0) {
        return fail(Errc::InvalidArgument, "SNAT ports: " + std::to_string(connections) +
                                               " connections is not between 1 and " +
                                               std::to_string(kConnectionsMax));
    }
    if (memory.size() < needed || reinterpret_cast<uintptr_t>(memory.data()) % kCacheLine != 0) {
        return fail(Errc::InvalidArgument, "SNAT ports: " + std::to_string(connections) +
                                               " connections need " + std::to_string(needed) +
                                               " bytes from the start of a cache line");
    }
    const bool by_hash = rules != nullptr && !rules->empty();
    const PortShare share = by_hash ? PortShare(range, {0}, 1) : PortShare(range, self, workers);
    const Layout layout(connections, share.blocks(), by_hash ? workers : 1);
    // This also touches every page of the memory, so that no worker has a page fault later.
    std::memset(memory.data(), 0, layout.bytes());
    PortProposer proposer(share, secret);
    proposer.rules_ = by_hash ? rules : nullptr;
    proposer.self_ = self;
    proposer.workers_ = workers;
    proposer.sets_ = {reinterpret_cast<PoolTags*>(memory.data()), layout.sets};
    proposer.pools_ = {reinterpret_cast<Pool*>(memory.data() + layout.sets * sizeof(PoolTags)), layout.pools};
    proposer.maps_ = memory.data() + layout.sets * sizeof(PoolTags) + layout.pools * sizeof(Pool);
    proposer.map_stride_ = layout.map_stride;
    proposer.full_words_ = static_cast<uint32_t>(layout.full_words);
    proposer.map_from_ = layout.map_from;
    proposer.maps_count_ = static_cast<uint32_t>(layout.maps);
    proposer.connections_ = connections;
    for (Pool& pool : proposer.pools_) {
        pool.map = Pool::kNoMap;
    }
    return proposer;
}

}  // namespace penstock::nat
