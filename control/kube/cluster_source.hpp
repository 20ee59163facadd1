// A cluster's API server as a source of objects: Services, endpoints and Nodes, each followed by a reflector of its own into one store.
// Without I/O; the program runs it with the transport:
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
#include "control/kube/collections.hpp"
#include "control/kube/decode.hpp"
#include "control/kube/endpoint_discovery.hpp"
#include "control/kube/event_text.hpp"
#include "control/kube/log_lines.hpp"
#include "control/kube/random_source.hpp"
#include "control/kube/reflector.hpp"
#include "control/kube/source_status.hpp"
#include "control/kube/store.hpp"
#include "control/kube/transport.hpp"

namespace penstock::kube {

struct ClusterSettings {
    std::string server;  // as the status shows it: "https://192.0.2.1:6443"
    Scope scope;
    bool streamed_lists = true;  // try them (APISYNC-011)
};

class ClusterSource {
 public:
    using Time = Reflector::Time;

    // Begins with the first on_time(). `transport` outlives this.
    ClusterSource(ClusterSettings settings, Transport& transport, RandomSource random);

    // When on_time() has something to do though nothing arrives.
    [[nodiscard]] Time next_deadline() const;
    // After each poll of the transport, whatever came of it.
    void on_time(Time now);

    // What the readers do not know yet; empty until each collection has been listed once (GEN-012).
    [[nodiscard]] Changes take_changes() { return store_.take_changes(); }
    [[nodiscard]] bool is_listed() const { return store_.is_listed(); }
    // What an Event about it has to say; nullopt where it is not known, or gone.
    [[nodiscard]] std::optional<ObjectIdentity> identity_of(ObjectKind kind, const ObjectName& name);
    [[nodiscard]] SourceStatus status(Time now) const;
    // Lines since the last call.
    [[nodiscard]] std::vector<LogLine> take_log() { return log_.take(); }

 private:
    ClusterSettings settings_;
    LogLines log_;
    Decoder decoder_;
    ServerAccess server_;
    Store store_;
    Reflector services_;
    Reflector endpoints_;
    std::optional<Reflector> nodes_;
    EndpointDiscovery discovery_;
    std::optional<Time> ran_at_;
};

}  // namespace penstock::kube
