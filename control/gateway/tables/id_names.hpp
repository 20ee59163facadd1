// SPDX-License-Identifier: Apache-2.0
// The records of a table file that say which service port, and which endpoint of a client with session
// affinity, the numbers in its tables mean. Numbers differ between two processes, names do not. Each record
// has a checksum that covers its own position. A record that was being written when its process ended is
// therefore not used. Nothing of value is lost by that: a record is complete before a worker gets the number.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <type_traits>

#include "control/base/interned.hpp"
#include "control/model/desired.hpp"
#include "dataplane/base/ids.hpp"
#include "dataplane/base/ip.hpp"
#include "dataplane/base/protocol.hpp"

namespace penstock::gateway {

// A service port of the process that writes the file.
struct NamedService {
    model::ServiceKey key;
    InternedText uid;              // model::Service::uid
    AffinityOwner affinity_owner;  // as in lb::Service; unset without affinity
    uint32_t affinity_epoch = 0;
    bool operator==(const NamedService&) const = default;
};

// An endpoint to which clients may be pinned.
struct NamedEndpoint {
    ServiceId service;
    EndpointId endpoint;  // lb::Backend::endpoint
    uint16_t stay = 0;    // lb::Backend::stay
    L4Port port = 0;
    IpAddr address;
    bool operator==(const NamedEndpoint&) const = default;
};

// At the position of its ServiceId.
struct ServiceRecord {
    uint32_t check;
    uint32_t affinity_owner;
    uint32_t affinity_epoch;
    uint8_t protocol;
    std::array<uint8_t, 4> lengths;  // of namespace, name, port name, uid
    std::array<char, 239> text;      // these, one after the other; zero-filled
};
// At the position of its BackendId. All zero: no client is pinned to the backend.
struct EndpointRecord {
    uint32_t check;
    uint32_t service;
    uint32_t endpoint;
    uint16_t stay;
    uint16_t port;
    std::array<uint8_t, 16> address;
};
static_assert(sizeof(ServiceRecord) == 256 && std::is_trivially_copyable_v<ServiceRecord>);
static_assert(sizeof(EndpointRecord) == 32 && std::is_trivially_copyable_v<EndpointRecord>);

// Empty if the names are too long for a record. Kubernetes limits a namespace, a name and a port name to 63
// characters each, and a uid to 36.
[[nodiscard]] std::optional<ServiceRecord> record_of(ServiceId at, const NamedService& service);
[[nodiscard]] EndpointRecord record_of(BackendId at, const NamedEndpoint& endpoint);

// Empty: the record was never written, is incomplete or damaged, or belongs to another position. Untrusted
// input.
[[nodiscard]] std::optional<NamedService> read_record(ServiceId at, const ServiceRecord& record);
[[nodiscard]] std::optional<NamedEndpoint> read_record(BackendId at, const EndpointRecord& record);

}  // namespace penstock::gateway
