// SPDX-License-Identifier: Apache-2.0
// Source of objects that reads the API server of a cluster: Services, endpoints and Nodes, and if addresses
// are allocated AddressPools and Namespaces, each followed by its own reflector into one store. Performs no
// I/O; the program drives it together with the transport:
//
//     while (!stopping) {
//         transport.poll(until(source.next_deadline()));
//         source.on_time(Clock::now());
//         hand_on(source.take_changes());
//     }
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "control/kube/changes.hpp"
#include "control/kube/decode.hpp"
#include "control/kube/events/event_text.hpp"
#include "control/kube/follow/collections.hpp"
#include "control/kube/follow/endpoint_discovery.hpp"
#include "control/kube/follow/reflector.hpp"
#include "control/kube/follow/store.hpp"
#include "control/kube/log_lines.hpp"
#include "control/kube/random_source.hpp"
#include "control/kube/source_status.hpp"
#include "control/kube/transport.hpp"

namespace penstock::kube {

struct ClusterSettings {
    std::string server;  // as shown in the status: "https://192.0.2.1:6443"
    Scope scope;
    bool streamed_lists = true;  // try streamed lists (APISYNC-011)
};

class ClusterSource {
 public:
    using Time = Reflector::Time;

    // Starts with the first on_time(). `transport` outlives this.
    ClusterSource(ClusterSettings settings, Transport& transport, RandomSource random);

    // Time at which on_time() has work to do even if nothing arrives.
    [[nodiscard]] Time next_deadline() const;
    // Call after each poll of the transport, whatever its result.
    void on_time(Time now);

    // Changes that the readers have not taken yet; empty until each required collection has been listed once
    // (GEN-012).
    [[nodiscard]] Changes take_changes() { return store_.take_changes(); }
    [[nodiscard]] bool is_listed() const { return store_.is_listed(); }
    // Identity of the object for an Event about it; nullopt if the object is unknown or deleted.
    [[nodiscard]] std::optional<ObjectIdentity> identity_of(ObjectKind kind, const ObjectName& name);
    // Lists the Services anew (Reflector::relist); is_relisted() afterwards.
    void relist_services() { services_.relist(); }
    [[nodiscard]] bool is_relisted() const { return services_.is_relisted(); }
    // The newest version of an object, also if take_changes() has not returned it yet.
    [[nodiscard]] std::optional<ServiceVersion> service_version(const ObjectName& name) const {
        return store_.service(name);
    }
    [[nodiscard]] std::optional<PoolVersion> pool_version(const std::string& name) const {
        return store_.pool(name);
    }
    [[nodiscard]] SourceStatus status(Time now) const;
    // Returns the log lines since the last call.
    [[nodiscard]] std::vector<LogLine> take_log() { return log_.take(); }

 private:
    [[nodiscard]] ObjectTable& table_of(ObjectKind kind);

    ClusterSettings settings_;
    LogLines log_;
    Decoder decoder_;
    ServerAccess server_;
    Store store_;
    Reflector services_;
    Reflector endpoints_;
    std::optional<Reflector> nodes_;
    std::optional<Reflector> pools_;
    std::optional<Reflector> namespaces_;
    EndpointDiscovery discovery_;
    std::optional<Time> ran_at_;
};

}  // namespace penstock::kube
