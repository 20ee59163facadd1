// What a source of objects tells about itself at one moment, as plain values: for /healthz, /readyz, /metrics and `penstockctl get sync`.
// The source thread fills it; ages are worked out when it is asked, so that no reader needs the source's clock.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace penstock::kube {

// One kind of object, as it is followed now. A folder of manifests has one for each kind as well: it lists and watches files.
struct CollectionStatus {
    enum class State : uint8_t {
        Waiting,     // not asked for yet, or it waits before it asks again
        Listing,     // a list, or a watch's initial events, is under way
        Watching,    // a watch is open
        BackingOff,  // the last request failed; last_error says how
    };
    std::string kind;  // "services", "endpointslices", "nodes"; "endpoints" where the server has no slices
    std::string path;  // what is asked for: "/apis/discovery.k8s.io/v1/endpointslices"
    State state = State::Waiting;
    bool listed = false;       // a first list was complete
    uint64_t objects = 0;      // in the store
    uint64_t quarantined = 0;  // not understood: their last good version, if any, stays (GEN-003)
    std::string resource_version;
    std::optional<std::chrono::milliseconds> last_event_age;  // since a list, an event or a bookmark arrived
    // Since the store was last known to follow the server: 0 while it does, nullopt before the first list.
    std::optional<std::chrono::milliseconds> stale_age;
    std::string
        last_error;  // of the trouble that lasts; "" where there is none. Never holds a secret (AUTH-009)
    uint64_t watch_restarts = 0;
    uint64_t relists = 0;                    // full lists after the first one
    std::map<std::string, uint64_t> errors;  // by kind: "connect", "tls", "timeout", "http_429", "decode"
};

struct SourceStatus {
    std::string source;  // "https://192.0.2.1:6443", "manifests /etc/penstock/manifests"
    // Since the source's loop last went round. It does so at least every ten seconds.
    std::chrono::milliseconds heartbeat_age{0};
    std::string trouble;  // why the source as a whole is not followed: a folder that is empty; "" where it is
    std::vector<CollectionStatus> collections;  // in the order in which they are asked for
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
