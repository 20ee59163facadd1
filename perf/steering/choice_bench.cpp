// SPDX-License-Identifier: Apache-2.0
// Cost of a SNAT port whose reply reaches the owner: PortProposer with the ports of a NicPort's RSS hash
// against whole blocks, in the same run, with 1 to 8 workers, IPv4 and IPv6, one worker's ports towards 64
// endpoints at 10 % and at 95 % use. Also DPDK's own function for this purpose, rte_thash_adjust_tuple, which
// finds a port for one tuple and does not check whether it is free. The results are explained in
// docs/performance.md.
#include <rte_thash.h>

#include <array>
#include <string>
#include <vector>

#include "dataplane/base/check.hpp"
#include "dataplane/nat/port_proposer.hpp"
#include "perf/harness/fingerprint.hpp"
#include "perf/harness/memory.hpp"
#include "perf/harness/options.hpp"
#include "perf/harness/order.hpp"
#include "perf/harness/report.hpp"
#include "perf/harness/rte_yardstick.hpp"
#include "perf/harness/windows.hpp"

namespace penstock::perf {
namespace {

constexpr uint32_t kEndpoints = 64;
constexpr uint32_t kBurst = 32;
constexpr uint32_t kTableEntries = 128;
constexpr nat::PortRange kRange{1024, 65'535};
constexpr NicPortId kPort{1};
constexpr uint32_t kVersion = 1;
constexpr uint32_t kPortSpace = 65'536;

std::vector<uint8_t> rss_key() {
    Prng prng(40);
    std::vector<uint8_t> key(40);
    for (uint8_t& byte : key) {
        byte = static_cast<uint8_t>(prng.next());
    }
    return key;
}

nat::ReplyRules rules_of(uint32_t workers) {
    nat::ReplyHash hash{
        .key = rss_key(), .worker_of = {}, .tcp4 = true, .udp4 = true, .tcp6 = true, .udp6 = true};
    for (uint32_t entry = 0; entry < kTableEntries; ++entry) {
        hash.worker_of.push_back({static_cast<uint8_t>(entry % workers)});
    }
    const nat::PortReplyHash of_port{kPort, &hash};
    auto rules = nat::ReplyRules::create({&of_port, 1}, workers);
    PENSTOCK_CHECK(rules);
    return std::move(*rules);
}

// One worker's ports towards the endpoints, at a constant load. The bits of taken ports replace the
// connection table, which contains the existing tuples in the packet path.
class Ports {
 public:
    // `rules` null: whole blocks.
    Ports(const nat::ReplyRules* rules, uint32_t workers, IpFamily family, uint32_t percent)
        : workers_(workers),
          family_(family),
          connections_(kEndpoints * kPortSpace / workers * 5 / 4),
          memory_(nat::PortProposer::memory_needed(connections_, kRange, workers, rules)),
          proposer_(make(rules)),
          by_hash_(rules != nullptr),
          taken_(kEndpoints * (kPortSpace / 64)),
          bound_(kEndpoints) {
        for (uint32_t endpoint = 0; endpoint < kEndpoints; ++endpoint) {
            const uint32_t wanted = static_cast<uint32_t>(uint64_t{usable_towards(endpoint)} * percent / 100);
            while (bound_[endpoint].size() < wanted) {
                const nat::PoolKey key = key_of(endpoint);
                open(endpoint, proposer_.open(key, proposer_.hash(key)));
            }
        }
    }

    // Ends a burst of connections and begins as many; the new ones are timed.
    BurstClock window(uint64_t budget_cycles) {
        BurstClock clock;
        std::array<uint32_t, kBurst> endpoints;
        while (clock.cycles() < budget_cycles) {
            for (uint32_t& endpoint : endpoints) {
                endpoint = prng_.below(kEndpoints);
                close_any(endpoint);
            }
            const uint64_t begin = cycles_begin();
            open_burst(endpoints);
            clock.add(cycles_end() - begin, kBurst);
        }
        return clock;
    }

 private:
    [[nodiscard]] nat::PortProposer make(const nat::ReplyRules* rules) const {
        auto made = nat::PortProposer::create(memory_.span(), connections_, kRange, WorkerId{0}, workers_,
                                              HashKey{1, 2}, rules);
        PENSTOCK_CHECK(made);
        return std::move(*made);
    }
    [[nodiscard]] nat::PoolKey key_of(uint32_t endpoint) const {
        const auto host = static_cast<uint8_t>(11 + endpoint);
        return family_ == IpFamily::V4
                   ? nat::PoolKey{IpAddr::v4(10, 80, 2, 1), IpAddr::v4(10, 80, 2, host), 9376, Protocol::Tcp}
                   : nat::PoolKey{IpAddr::v6({0xfd, 0, 0, 0x80, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}),
                                  IpAddr::v6({0xfd, 0, 0, 0x80, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, host}), 9376,
                                  Protocol::Tcp};
    }
    [[nodiscard]] uint32_t usable_towards(uint32_t endpoint) const {
        const nat::PortRules rules{.range = kRange,
                                   .own = by_hash_ ? proposer_.own_ports(key_of(endpoint), kPort)
                                                   : nat::OwnPorts(WorkerId{0}, workers_),
                                   .version = kVersion};
        uint32_t usable = 0;
        for (uint32_t block = 0; block < nat::kPortBlocks; ++block) {
            usable += static_cast<uint32_t>(std::popcount(rules.usable(block)));
        }
        return usable;
    }

    // As in pipeline/opening/new_flow: each step for all connections before the next step.
    PENSTOCK_NOINLINE void open_burst(std::span<const uint32_t> endpoints) {
        std::array<uint64_t, kBurst> hashes;
        std::array<nat::PoolNumber, kBurst> probably;
        for (size_t i = 0; i < endpoints.size(); ++i) {
            hashes[i] = proposer_.hash(key_of(endpoints[i]));
            proposer_.prefetch(hashes[i]);
        }
        for (size_t i = 0; i < endpoints.size(); ++i) {
            probably[i] = proposer_.prefetch_pool(hashes[i]);
        }
        for (size_t i = 0; i < endpoints.size(); ++i) {
            open(endpoints[i], proposer_.open(key_of(endpoints[i]), hashes[i], probably[i]));
        }
    }
    PENSTOCK_ALWAYS_INLINE void open(uint32_t endpoint, nat::PoolNumber pool) {
        for (;;) {
            L4Port port = proposer_.propose_in_block(pool, kVersion);
            if (port == 0) [[unlikely]] {
                const auto proposed =
                    proposer_.propose(pool, {.range = kRange,
                                             .own = proposer_.own_ports(key_of(endpoint), kPort),
                                             .version = kVersion});
                PENSTOCK_CHECK(proposed);
                port = *proposed;
            }
            uint64_t& word = taken_[endpoint * (kPortSpace / 64) + port / 64];
            const uint64_t bit = uint64_t{1} << (port % 64);
            if ((word & bit) == 0) [[likely]] {
                word |= bit;
                bound_[endpoint].push_back(port);
                proposer_.bind(pool, port);
                return;
            }
            proposer_.refuse(pool, port);
        }
    }
    void close_any(uint32_t endpoint) {
        std::vector<L4Port>& ports = bound_[endpoint];
        std::swap(ports[prng_.below(static_cast<uint32_t>(ports.size()))], ports.back());
        const L4Port port = ports.back();
        ports.pop_back();
        taken_[endpoint * (kPortSpace / 64) + port / 64] &= ~(uint64_t{1} << (port % 64));
        const nat::PoolKey key = key_of(endpoint);
        proposer_.give_back(proposer_.open(key, proposer_.hash(key)), port);
    }

    uint32_t workers_;
    IpFamily family_;
    uint32_t connections_;
    HugeMemory memory_;
    nat::PortProposer proposer_;
    bool by_hash_;
    std::vector<uint64_t> taken_;
    std::vector<std::vector<L4Port>> bound_;
    Prng prng_{7};
};

// DPDK's own method: finds a port for the given tuple with the required low bits of the hash. It changes a
// part of the key, so it is unusable with a NIC whose key is fixed.
class Adjuster {
 public:
    explicit Adjuster(IpFamily family) : bytes_(family == IpFamily::V4 ? 12 : 36) {
        std::vector<uint8_t> key = rss_key();
        const std::string name = family == IpFamily::V4 ? "adjust4" : "adjust6";
        context_ = rte_thash_init_ctx(name.c_str(), static_cast<uint32_t>(key.size()), 7, key.data(), 0);
        PENSTOCK_CHECK(context_ != nullptr &&
                       rte_thash_add_helper(context_, "port", 16, (bytes_ - 2) * 8) == 0);
        helper_ = rte_thash_get_helper(context_, "port");
    }
    ~Adjuster() { rte_thash_free_ctx(context_); }
    Adjuster(const Adjuster&) = delete;
    Adjuster& operator=(const Adjuster&) = delete;

    BurstClock window(uint64_t budget_cycles) {
        BurstClock clock;
        std::array<std::array<uint8_t, 36>, kBurst> tuples;
        while (clock.cycles() < budget_cycles) {
            for (auto& tuple : tuples) {
                for (uint8_t& byte : tuple) {
                    byte = static_cast<uint8_t>(prng_.next());
                }
            }
            const uint64_t begin = cycles_begin();
            for (auto& tuple : tuples) {
                failed_ += rte_thash_adjust_tuple(context_, helper_, tuple.data(), bytes_, tuple[0] & 127, 1,
                                                  nullptr, nullptr) != 0
                               ? 1
                               : 0;
            }
            clock.add(cycles_end() - begin, kBurst);
        }
        PENSTOCK_CHECK(failed_ == 0);
        return clock;
    }

 private:
    uint32_t bytes_;
    rte_thash_ctx* context_ = nullptr;
    rte_thash_subtuple_helper* helper_ = nullptr;
    uint64_t failed_ = 0;
    Prng prng_{9};
};

void measure(const Options& options, uint32_t workers, IpFamily family, uint32_t percent) {
    const std::string name = std::string("choice.") + (family == IpFamily::V4 ? "v4" : "v6") + ".workers" +
                             std::to_string(workers) + ".used" + std::to_string(percent);
    const nat::ReplyRules rules = rules_of(workers);
    Ports in_blocks(nullptr, workers, family, percent), by_hash(&rules, workers, family, percent);
    Adjuster adjuster(family);
    const std::array<Side, 3> sides = {
        {{name + ".blocks", [&](uint64_t budget) { return in_blocks.window(budget); }},
         {name + ".rss", [&](uint64_t budget) { return by_hash.window(budget); }},
         {name + ".rte_thash", [&](uint64_t budget) { return adjuster.window(budget); }}}};
    const std::vector<Summary> result = interleave(sides, options.plan);
    print_value(name + ".rss_to_blocks", result[1].min / result[0].min, "ratio");
    print_value(name + ".rss_to_rte_thash", result[1].min / result[2].min, "ratio");
}

}  // namespace
}  // namespace penstock::perf

int main(int argc, char** argv) {
    using namespace penstock;
    using namespace penstock::perf;
    constexpr std::array<uint32_t, 4> kWorkers = {1, 2, 4, 8};
    constexpr std::array<uint32_t, 2> kQuickWorkers = {2, 4};
    const Options options = read_options(argc, argv, kWorkers, kQuickWorkers, {});
    start_eal();
    print_fingerprint();
    for (const uint32_t workers : options.sizes) {
        for (const IpFamily family : {IpFamily::V4, IpFamily::V6}) {
            for (const uint32_t percent : {10, 95}) {
                measure(options, workers, family, percent);
            }
        }
    }
    return 0;
}
