// SPDX-License-Identifier: Apache-2.0
// What a former process left, as the start of the workers gets it: the memory of its tables, and the names
// that its numbers had. And the report of what was adopted from it. docs/adr/0038 describes the adoption.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <optional>
#include <span>
#include <string_view>
#include <tuple>
#include <vector>

#include "dataplane/base/ids.hpp"
#include "dataplane/base/ip.hpp"
#include "dataplane/base/protocol.hpp"
#include "dataplane/base/socket_address.hpp"
#include "dataplane/conn/table_description.hpp"

namespace penstock::adopt {

// A Service of the former process that had session affinity, for the entries of its clients.
struct FormerAffinity {
    // The endpoint of an entry: an element of lb::BackendSet::usable of the former Service.
    struct Endpoint {
        EndpointId former;  // lb::Backend::endpoint
        uint16_t stay = 0;  // lb::Backend::stay
        IpAddr address;
        L4Port port = 0;
    };
    AffinityOwner owner;              // lb::Service::affinity_owner
    uint32_t epoch = 0;               // lb::Service::affinity_epoch
    ServiceId current;                // the same service port in this process; of several ports, any one
    std::vector<Endpoint> endpoints;  // of all sets
};

// An endpoint that gets no new flows in the current snapshot, so that no backend set contains it, but whose
// flows continue: it is terminating or not ready, or is gone and a flow order will end its flows later.
struct KeptEndpoint {
    ServiceId service;  // current
    BackendId backend;  // current
    IpAddr address;
    L4Port port = 0;
};

// Flows of a former process that the snapshot has no place for, although it has their Service: that Service
// has lost the endpoint or the frontend. The running process would end them by its rules (docs/adr/0017).
struct LeavingFlows {
    ServiceId service;  // current
    SocketAddress endpoint;
    SocketAddress frontend;
    auto operator<=>(const LeavingFlows& other) const noexcept {
        return std::tie(service.value, endpoint, frontend) <=>
               std::tie(other.service.value, other.endpoint, other.frontend);
    }
    bool operator==(const LeavingFlows&) const = default;
};

// All memory is only read, may be damaged in any way, and must stay mapped until WorkerSet::start() returns.
// It must be of this boot, because its times are: the caller compares the boot id.
struct FormerTables {
    // The connection table of each former worker (the memory of conn::Table, in the order of the workers).
    std::vector<std::span<const std::byte>> connections;
    // Set if these tables have another layout than those of this build.
    std::optional<conn::TableDescription> layout;
    // The current number of each service port of the former process, by its former number; unset: gone, or
    // another Service of this name. Without a value (the names are damaged), only the addresses identify a
    // connection's Service.
    std::optional<std::vector<ServiceId>> services;
    std::vector<KeptEndpoint> kept_endpoints;
    // The current backend of such flows; unset: they end now. Called once for each, on the thread of
    // Adoption::finish(). Null: all of them end. The caller ends the others later, by flow orders.
    std::function<BackendId(const LeavingFlows&)> keep_leaving;
    // The memory of lb::AffinityTable; empty: none.
    std::span<const std::byte> affinity;
    std::vector<FormerAffinity> affinity_services;
};

// Why a connection of the former process is not adopted. X(Enumerator, name, meaning)
#define PENSTOCK_NOT_ADOPTED(X)                                                                        \
    X(TableDamaged, "table_damaged",                                                                   \
      "tables, not connections: no table of this layout is in the memory of a former worker")          \
    X(Damaged, "damaged", "a field of the entry is out of range, or its fields contradict each other") \
    X(UnknownValue, "unknown_value",                                                                   \
      "of a table of another layout: this build does not know its protocol or its state")              \
    X(Expired, "expired", "idle past its limit and a sweep; the time between the processes counts")    \
    X(NoFrontend, "no_frontend", "its frontend is gone, or belongs to another Service")                \
    X(NoEndpoint, "no_endpoint", "its endpoint is gone")                                               \
    X(NoSnatPort, "no_snat_port", "its SNAT address or port is none that this process may use")        \
    X(Duplicate, "duplicate", "another connection has one of its tuples")                              \
    X(TableFull, "table_full", "the table of its worker is full")

enum class NotAdopted : uint8_t {
#define PENSTOCK_X(name, text, meaning) name,
    PENSTOCK_NOT_ADOPTED(PENSTOCK_X)
#undef PENSTOCK_X
};
inline constexpr size_t kNotAdopted = 0
#define PENSTOCK_X(name, text, meaning) +1
    PENSTOCK_NOT_ADOPTED(PENSTOCK_X)
#undef PENSTOCK_X
    ;
// "damaged", "no_endpoint", ...
[[nodiscard]] std::string_view to_string(NotAdopted reason) noexcept;

// The result of an adoption.
struct Report {
    std::vector<uint64_t> adopted;  // connections, by worker of this process
    // Version of the layout that the former tables had, if it is another one than that of this build.
    std::optional<uint32_t> converted_from;
    std::array<uint64_t, kNotAdopted> lost{};  // by NotAdopted
    // Of the adopted ones: those with a direction whose packets may arrive at a worker that cannot compute
    // the owner (pipeline::MovedFlows).
    uint64_t moved = 0;
    uint64_t affinity_adopted = 0;  // entries of the affinity table
    uint64_t affinity_lost = 0;
    uint64_t microseconds = 0;

    [[nodiscard]] uint64_t all_adopted() const {
        return std::accumulate(adopted.begin(), adopted.end(), uint64_t{0});
    }
    [[nodiscard]] uint64_t of(NotAdopted reason) const { return lost[static_cast<size_t>(reason)]; }
    // Connections lost, for any reason.
    [[nodiscard]] uint64_t all_lost() const {
        return std::accumulate(lost.begin(), lost.end(), uint64_t{0}) - of(NotAdopted::TableDamaged);
    }
};

}  // namespace penstock::adopt
