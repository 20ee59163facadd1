// A cluster's API server as a source: the transport, what is asked of it, and the Events that go back, run by the source thread.
//
//     wait(): poll the transport -> reflectors -> Events     take_changes(): what the store has for its readers
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>

#include "control/kube/cluster_source.hpp"
#include "control/kube/curl_transport.hpp"
#include "control/kube/event_recorder.hpp"
#include "control/kube/write_limiter.hpp"
#include "control/sync/event_observer.hpp"
#include "control/sync/flood_guard.hpp"
#include "control/sync/source.hpp"
#include "dataplane/base/result.hpp"

namespace penstock::sync {

// The loop goes round at least so often, and then sees that the program shall end.
inline constexpr std::chrono::milliseconds kRoundMax{500};
// Status is copied for its readers at most so often: a storm of events has better things to do.
inline constexpr std::chrono::milliseconds kStatusPeriod{100};

class ClusterFollower final : public Source {
 public:
    struct Settings {
        kube::ClientConfig config;
        kube::Scope scope;
        bool allow_insecure = false;  // AUTH-006
        bool events = true;
    };
    // Reads what the configuration names; connects to nothing yet.
    [[nodiscard]] static Result<std::unique_ptr<ClusterFollower>> open(const Settings& settings);

    [[nodiscard]] bool wait(int stop_descriptor) override;
    [[nodiscard]] std::optional<kube::Changes> take_changes() override;
    [[nodiscard]] kube::SourceStatus status() const override;
    // Any thread.
    [[nodiscard]] kube::EventsStatus events_status() const;
    // Who writes what gateways find as Events; null where none are written. Lives as long as this.
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
    Clock::time_point status_at_{};  // likewise: its ages are of then
};

}  // namespace penstock::sync
