// SPDX-License-Identifier: Apache-2.0
// A cluster's API server as a source: the transport, the lists and watches, and the Events written back. Run
// by the source thread.
//
//     wait(): poll the transport -> reflectors -> Events     take_changes(): pending changes of the store
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>

#include "control/kube/client/curl_transport.hpp"
#include "control/kube/events/event_recorder.hpp"
#include "control/kube/events/write_limiter.hpp"
#include "control/kube/follow/cluster_source.hpp"
#include "control/sync/event_observer.hpp"
#include "control/sync/flood_guard.hpp"
#include "control/sync/source.hpp"
#include "dataplane/base/result.hpp"

namespace penstock::sync {

// Longest time of one loop round. A stop request is seen after that at the latest.
inline constexpr std::chrono::milliseconds kRoundMax{500};
// Shortest time between two copies of the status for its readers. Limits the cost during a storm of events.
inline constexpr std::chrono::milliseconds kStatusPeriod{100};

class ClusterFollower final : public Source {
 public:
    struct Settings {
        kube::ClientConfig config;
        kube::Scope scope;
        bool allow_insecure = false;  // honour insecure-skip-tls-verify (AUTH-006)
        bool events = true;
    };
    // Reads the files that the configuration names. Does not connect yet.
    [[nodiscard]] static Result<std::unique_ptr<ClusterFollower>> open(const Settings& settings);

    [[nodiscard]] bool wait(int stop_descriptor) override;
    [[nodiscard]] std::optional<kube::Changes> take_changes() override;
    [[nodiscard]] kube::SourceStatus status() const override;
    // Any thread.
    [[nodiscard]] kube::EventsStatus events_status() const;
    // Writes the findings of gateways as Events; null if Events are off. Lives as long as this object.
    [[nodiscard]] Observer* observer() { return observer_ ? &*observer_ : nullptr; }

 private:
    using Clock = std::chrono::steady_clock;

    ClusterFollower(const Settings& settings, std::unique_ptr<kube::CurlTransport> transport);
    [[nodiscard]] std::chrono::milliseconds until_due() const;
    void publish_status(Clock::time_point now);

    std::unique_ptr<kube::CurlTransport> transport_;
    kube::ClusterSource source_;
    kube::WriteLimiter limiter_;
    std::optional<kube::EventRecorder> recorder_;
    std::optional<EventObserver> observer_;
    FloodGuard flood_guard_;
    bool told_all_ = false;

    mutable std::mutex mutex_;
    kube::SourceStatus status_;      // guarded by mutex_
    Clock::time_point status_at_{};  // guarded by mutex_; the ages in status_ refer to this time
};

}  // namespace penstock::sync
