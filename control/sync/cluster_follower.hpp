// SPDX-License-Identifier: Apache-2.0
// A cluster's API server as a source: the transport, the lists and watches, and the Events written back. Run
// by the source thread.
//
//     wait(): poll the transport -> reflectors -> addresses, Events     take_changes(): changes of the store
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>

#include "control/kube/client/curl_transport.hpp"
#include "control/kube/events/event_recorder.hpp"
#include "control/kube/events/write_limiter.hpp"
#include "control/kube/follow/cluster_source.hpp"
#include "control/sync/addresses/address_writer.hpp"
#include "control/sync/addresses/gateway_reports.hpp"
#include "control/sync/event_observer.hpp"
#include "control/sync/flood_guard.hpp"
#include "control/sync/pool_watch.hpp"
#include "control/sync/source.hpp"
#include "dataplane/base/result.hpp"

namespace penstock::sync {

// Longest time of one loop round. A stop request is seen after that at the latest.
inline constexpr std::chrono::milliseconds kRoundMax{500};
// Shortest time between two copies of the status for its readers. Limits the cost during a storm of events.
inline constexpr std::chrono::milliseconds kStatusPeriod{100};
// Longest time for the release of the Lease at the end.
inline constexpr std::chrono::seconds kReleaseMax{3};

class ClusterFollower final : public Source {
 public:
    struct Settings {
        kube::ClientConfig config;
        kube::Scope scope;
        bool allow_insecure = false;  // honour insecure-skip-tls-verify (AUTH-006)
        bool events = true;
        uint32_t status_per_s = kube::kStatusRateDefault;
        std::optional<AddressWriter::Settings> addresses;  // nullopt: addresses are not allocated
        std::filesystem::path pools;                       // "": AddressPool objects of the cluster
    };
    // Reads the files that the configuration names. Does not connect yet.
    [[nodiscard]] static Result<std::unique_ptr<ClusterFollower>> open(const Settings& settings);

    [[nodiscard]] bool wait(int stop_descriptor) override;
    [[nodiscard]] std::optional<kube::Changes> take_changes() override;
    [[nodiscard]] kube::SourceStatus status() const override;
    // Any thread.
    [[nodiscard]] kube::EventsStatus events_status() const;
    // Any thread. Empty if addresses are not allocated.
    [[nodiscard]] std::optional<AddressStatus> address_status() const;
    // Reads the file with the pools now (SIGHUP). Any thread.
    void reload() const;
    // Ends the leadership and releases its Lease, for at most kReleaseMax. Call when wait() is not called any
    // more.
    void release();
    // Writes the findings of gateways as Events and conditions; null without both. Lives as long as this
    // object.
    [[nodiscard]] Observer* observer() { return observer_ ? &*observer_ : nullptr; }

 private:
    using Clock = std::chrono::steady_clock;

    ClusterFollower(const Settings& settings, std::unique_ptr<kube::CurlTransport> transport);
    [[nodiscard]] std::chrono::milliseconds until_due() const;
    void publish_status(Clock::time_point now);
    void log(const std::vector<kube::LogLine>& lines, Clock::time_point now);
    void advance(Clock::time_point now);

    std::unique_ptr<kube::CurlTransport> transport_;
    kube::ClusterSource source_;
    kube::WriteLimiter limiter_;  // of all writes
    std::optional<kube::EventRecorder> recorder_;
    std::optional<AddressWriter> addresses_;
    std::optional<GatewayReports> reports_;  // uses the board of addresses_
    std::optional<EventObserver> observer_;
    FloodGuard flood_guard_;
    kube::Changes changes_;  // not taken yet
    bool told_all_ = false;

    mutable std::mutex mutex_;
    kube::Changes file_pools_;               // guarded by mutex_; reported by pool_watch_
    kube::SourceStatus status_;              // guarded by mutex_
    Clock::time_point status_at_{};          // guarded by mutex_; the ages in status_ refer to this time
    std::unique_ptr<PoolWatch> pool_watch_;  // last: its thread uses the above
};

}  // namespace penstock::sync
