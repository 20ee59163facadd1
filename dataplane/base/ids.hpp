// SPDX-License-Identifier: Apache-2.0
// Strong id types: a ServiceId cannot be used as a BackendId, nor a bare integer as either. Ids are dense:
// they index arrays sized by limits.hpp. Ids are stable across configurations: the same service port keeps
// its id, so that flows, counters and scheduler state survive a change.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>

namespace penstock {

template <typename Tag, typename Rep>
struct Id {
    Rep value = kNone;
    static constexpr Rep kNone = static_cast<Rep>(~Rep{0});
    constexpr bool is_set() const noexcept { return value != kNone; }
    constexpr bool operator==(const Id&) const = default;
    constexpr auto operator<=>(const Id&) const = default;
};

// One service port: (namespace, service, port name, protocol).
using ServiceId = Id<struct ServiceTag, uint32_t>;
// One endpoint of one service port: (service port, address, port).
using BackendId = Id<struct BackendTag, uint32_t>;
// The name of a backend in affinity entries (lb::Backend::endpoint).
using EndpointId = Id<struct EndpointTag, uint32_t>;
// One service port, or all service ports of a Service (lb/service.hpp).
using AffinityOwner = Id<struct AffinityTag, uint32_t>;
using WorkerId = Id<struct WorkerTag, uint8_t>;  // 0 .. workers-1
// 0 .. ports-1, in the order of the --port options. Also used as the index of the DPDK port.
using NicPortId = Id<struct NicPortTag, uint8_t>;
// A (NicPort, address) next hop. Stable as long as the next hop is known.
using NeighbourId = Id<struct NeighbourTag, uint32_t>;
using ConnectionIndex = Id<struct ConnectionTag, uint32_t>;  // an entry of one worker's connection table

}  // namespace penstock

template <typename Tag, typename Rep>
struct std::hash<penstock::Id<Tag, Rep>> {
    size_t operator()(const penstock::Id<Tag, Rep>& id) const noexcept { return std::hash<Rep>{}(id.value); }
};
