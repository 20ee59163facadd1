// SPDX-License-Identifier: Apache-2.0
#include "dataplane/nat/reply_hash.hpp"

#include <algorithm>
#include <bit>

#include "dataplane/nat/toeplitz.hpp"

namespace penstock::nat {
namespace {

// The table entries that the SNAT ports of one tuple reach from entry 0. As the hash is linear, these are the
// sums of the contributions of each bit of the port. From any other entry they are the same, shifted by
// exclusive or.
std::vector<uint32_t> reach_of_ports(const Toeplitz& toeplitz, IpFamily family, uint32_t mask) {
    std::vector<uint32_t> reached{0};
    for (uint32_t bit = 0; bit < 16; ++bit) {
        const uint32_t adds = toeplitz.of_destination_port(family, static_cast<L4Port>(1U << bit)) & mask;
        if (std::ranges::find(reached, adds) == reached.end()) {
            const size_t before = reached.size();
            for (size_t i = 0; i < before; ++i) {
                reached.push_back(reached[i] ^ adds);
            }
        }
    }
    return reached;
}

// The entries form classes, and all ports of an endpoint lead to the same class. Every worker needs its share
// in each class.
std::string starved_worker(const ReplyHash& hash, uint32_t workers, IpFamily family) {
    const auto size = static_cast<uint32_t>(hash.worker_of.size());
    const std::vector<uint32_t> reach = reach_of_ports(Toeplitz(hash.key), family, size - 1);
    std::vector<bool> seen(size);
    for (uint32_t first = 0; first < size; ++first) {
        if (seen[first]) {
            continue;
        }
        std::vector<uint32_t> entries(workers);
        for (const uint32_t step : reach) {
            seen[first ^ step] = true;
            ++entries[hash.worker_of[first ^ step].value];
        }
        const auto fewest = std::ranges::min_element(entries);
        if (uint64_t{*fewest} * 2 * workers < reach.size()) {
            return "worker " + std::to_string(fewest - entries.begin()) + " would own " +
                   std::to_string(*fewest) + " in " + std::to_string(reach.size()) +
                   " of the SNAT ports towards some endpoints over " + to_string(family) +
                   ", less than half of an even share";
        }
    }
    return "";
}

}  // namespace

std::string obstacle_of(const ReplyHash& hash, uint32_t workers) {
    const size_t size = hash.worker_of.size();
    if (!std::has_single_bit(size) || size > kReplyHashEntriesMax) {
        return "its table has " + std::to_string(size) + " entries, which is not a power of two up to " +
               std::to_string(kReplyHashEntriesMax);
    }
    for (const WorkerId worker : hash.worker_of) {
        if (worker.value >= workers) {
            return "its table contains worker " + std::to_string(worker.value) +
                   ", but the number of workers is " + std::to_string(workers);
        }
    }
    if (!hash.tcp4 && !hash.udp4 && !hash.tcp6 && !hash.udp6) {
        return "it hashes the L4 ports of neither TCP nor UDP";
    }
    for (const IpFamily family : {IpFamily::V4, IpFamily::V6}) {
        if (!hash.covers(family, Protocol::Tcp) && !hash.covers(family, Protocol::Udp)) {
            continue;
        }
        if (const size_t needed = Toeplitz::key_bytes(family); hash.key.size() < needed) {
            return "its key has " + std::to_string(hash.key.size()) + " bytes, and " + to_string(family) +
                   " needs " + std::to_string(needed);
        }
        if (std::string starved = starved_worker(hash, workers, family); !starved.empty()) {
            return starved;
        }
    }
    return "";
}

WorkerId worker_of(const ReplyHash& hash, const packet::FlowKey& as_received) {
    return hash.worker_of[Toeplitz(hash.key).of(as_received) % hash.worker_of.size()];
}

}  // namespace penstock::nat
