// SPDX-License-Identifier: Apache-2.0
// Status of a source of objects at one moment, as plain values: for /healthz, /readyz, /metrics and
// `penstockctl get sync`. The source thread fills it. Ages are computed when the status is read, so that
// readers do not need the source's clock.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace penstock::kube {

// Status of one kind of object. A folder of manifests has one for each kind as well: it lists and watches
// files.
struct CollectionStatus {
    enum class State : uint8_t {
        Waiting,     // not requested yet, or waiting before the next request
        Listing,     // a list, or the initial events of a watch, in progress
        Watching,    // a watch is open
        BackingOff,  // the last request failed; see last_error
    };
    // "services", "endpointslices", "nodes", "addresspools", "namespaces"; "endpoints" if the server has no
    // slices
    std::string kind;
    std::string path;  // request path: "/apis/discovery.k8s.io/v1/endpointslices"
    State state = State::Waiting;
    bool listed = false;       // a first list was completed
    bool optional = false;     // nothing is withheld from gateways until it is listed
    uint64_t objects = 0;      // in the store
    uint64_t quarantined = 0;  // cannot be decoded: the last good version, if any, stays (GEN-003)
    std::string resource_version;
    std::optional<std::chrono::milliseconds> last_event_age;  // since the last list, event or bookmark
    // Time since the store was last known to follow the server: 0 while it does, nullopt before the first
    // list.
    std::optional<std::chrono::milliseconds> stale_age;
    std::string last_error;  // of the current trouble; "" without one. Never contains a secret (AUTH-009)
    uint64_t watch_restarts = 0;
    uint64_t relists = 0;                    // full lists after the first one
    std::map<std::string, uint64_t> errors;  // by kind: "connect", "tls", "timeout", "http_429", "decode"
};

struct SourceStatus {
    std::string source;  // "https://192.0.2.1:6443", "manifests /etc/penstock/manifests"
    // Time since the last round of the source's loop, which runs at least every ten seconds.
    std::chrono::milliseconds heartbeat_age{0};
    std::string trouble;  // why the whole source is not followed, e.g. an empty folder; "" if it is
    std::vector<CollectionStatus> collections;  // in request order
};

[[nodiscard]] constexpr const char* to_string(CollectionStatus::State state) noexcept {
    switch (state) {
        case CollectionStatus::State::Waiting:
            return "waiting";
        case CollectionStatus::State::Listing:
            return "listing";
        case CollectionStatus::State::Watching:
            return "watching";
        case CollectionStatus::State::BackingOff:
            return "backing off";
    }
    return "?";
}

}  // namespace penstock::kube
