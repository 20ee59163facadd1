// SPDX-License-Identifier: Apache-2.0
#include "control/sync/cluster_follower.hpp"

#include <poll.h>

#include <algorithm>
#include <string>
#include <utility>

#include "control/log/log.hpp"

namespace penstock::sync {
namespace {

using std::chrono::milliseconds;

bool is_readable(int descriptor) {
    pollfd asked{.fd = descriptor, .events = POLLIN, .revents = 0};
    return ::poll(&asked, 1, 0) > 0;
}

kube::ObjectKind kind_named(const std::string& kind) {
    return kind == "Node"            ? kube::ObjectKind::Node
           : kind == "AddressPool"   ? kube::ObjectKind::AddressPool
           : kind == "EndpointSlice" ? kube::ObjectKind::EndpointSlice
                                     : kube::ObjectKind::Service;
}

}  // namespace

Result<std::unique_ptr<ClusterFollower>> ClusterFollower::open(const Settings& settings) {
    PENSTOCK_TRY(auto transport, kube::CurlTransport::create(
                                     settings.config, {.allow_insecure = settings.allow_insecure,
                                                       .user_agent = "penstock-sync/" PENSTOCK_VERSION}));
    std::unique_ptr<ClusterFollower> follower(new ClusterFollower(settings, std::move(transport)));
    if (!settings.pools.empty()) {
        ClusterFollower& self = *follower;
        const auto take = [&self](kube::Changes changes) {
            {
                const std::lock_guard lock(self.mutex_);
                self.file_pools_.merge(std::move(changes));
            }
            self.transport_->wake();
        };
        PENSTOCK_TRY_IN("--address-pools", follower->pool_watch_,
                        PoolWatch::start(settings.pools, ManifestSource::WhenEmpty::Keep, take));
    }
    return follower;
}

ClusterFollower::ClusterFollower(const Settings& settings, std::unique_ptr<kube::CurlTransport> transport)
    : transport_(std::move(transport)),
      source_({.server = settings.config.server, .scope = settings.scope}, *transport_,
              kube::system_random()),
      limiter_(settings.status_per_s) {
    if (settings.events) {
        recorder_.emplace(
            *transport_, limiter_,
            [this](const std::string& kind, const kube::ObjectName& object) {
                return source_.identity_of(kind_named(kind), object);
            },
            kube::system_random(), [this] { transport_->wake(); });
    }
    if (settings.addresses) {
        addresses_.emplace(
            *settings.addresses, *transport_, limiter_,
            AddressWriter::Calls{
                .service = [this](const kube::ObjectName& name) { return source_.service_version(name); },
                .pool = [this](const std::string& name) { return source_.pool_version(name); },
                .relist = [this] { source_.relist_services(); },
                .is_relisted = [this] { return source_.is_relisted(); },
                .clock = [] { return Clock::now(); },
                .report =
                    [this](kube::Event event) {
                        if (recorder_) {
                            recorder_->offer(std::move(event));
                        }
                    },
                .wake = [this] { transport_->wake(); },
                .has_other_gateways = [this] { return reports_->is_read(Clock::now()); }},
            kube::system_random());
        const kube::LeaderElector::Settings& election = settings.addresses->election;
        reports_.emplace(GatewayReports::Settings{.lease = election.lease, .identity = election.identity},
                         *transport_, limiter_, addresses_->board(),
                         [this](const kube::ObjectName& name) { return source_.service_version(name); });
    }
    if (recorder_ || addresses_) {
        observer_.emplace(recorder_ ? &*recorder_ : nullptr, addresses_ ? &addresses_->board() : nullptr);
    }
    publish_status(Clock::now());
}

bool ClusterFollower::wait(int stop_descriptor) {
    if (is_readable(stop_descriptor)) {
        return false;
    }
    transport_->poll(until_due());
    advance(Clock::now());
    return true;
}

void ClusterFollower::advance(Clock::time_point now) {
    source_.on_time(now);
    if (source_.is_listed()) {
        kube::Changes changes = source_.take_changes();
        if (addresses_) {
            kube::Changes noted = changes;
            {
                const std::lock_guard lock(mutex_);
                noted.merge(std::exchange(file_pools_, {}));
            }
            addresses_->note(noted);
            reports_->note(noted);
        }
        changes_.merge(std::move(changes));
    }
    if (addresses_) {
        const auto wall = std::chrono::system_clock::now();
        addresses_->advance(now, wall);
        reports_->advance(now, wall, addresses_->is_leader(now));
        log(addresses_->take_log(), now);
        log(reports_->take_log(), now);
    }
    if (recorder_) {
        recorder_->advance(now, std::chrono::system_clock::now());
    }
    log(source_.take_log(), now);
    publish_status(now);
}

void ClusterFollower::log(const std::vector<kube::LogLine>& lines, Clock::time_point now) {
    for (const kube::LogLine& line : lines) {
        const auto left_out = flood_guard_.admit(now);
        if (!left_out) {
            continue;
        }
        if (*left_out > 0) {
            penstock::log::get("kube").warn("{} log lines suppressed by the rate limit", *left_out);
        }
        penstock::log::get("kube").log(
            line.level == kube::LogLine::Level::Warning ? spdlog::level::warn : spdlog::level::info, "{}",
            line.text);
    }
}

void ClusterFollower::release() {
    if (!addresses_) {
        return;
    }
    addresses_->release();
    for (const auto end = Clock::now() + kReleaseMax; !addresses_->is_released() && Clock::now() < end;) {
        addresses_->advance(Clock::now(), std::chrono::system_clock::now());
        transport_->poll(milliseconds(50));
    }
}

void ClusterFollower::reload() const {
    if (pool_watch_) {
        pool_watch_->reload();
    }
}

std::optional<AddressStatus> ClusterFollower::address_status() const {
    return addresses_ ? std::optional(addresses_->status()) : std::nullopt;
}

milliseconds ClusterFollower::until_due() const {
    const auto now = Clock::now();
    auto due = std::min(source_.next_deadline(), now + kRoundMax);
    if (recorder_) {
        due = std::min(due, recorder_->next_wake().value_or(due));
    }
    if (addresses_) {
        due = std::min(due, addresses_->next_wake().value_or(due));
        due = std::min(due, reports_->next_wake().value_or(due));
    }
    // Compared, not subtracted: "at once" is Time::min(), and the difference to it would overflow a duration.
    return due <= now ? milliseconds(0) : std::chrono::ceil<milliseconds>(due - now);
}

std::optional<kube::Changes> ClusterFollower::take_changes() {
    if (!source_.is_listed()) {
        return std::nullopt;
    }
    // Readers have no use for them.
    changes_.pools.clear();
    changes_.pools_listed = false;
    changes_.held_addresses.clear();
    kube::Changes changes = std::exchange(changes_, {});
    if (std::exchange(told_all_, true) && changes.is_empty()) {
        return std::nullopt;
    }
    return changes;
}

void ClusterFollower::publish_status(Clock::time_point now) {
    const std::lock_guard lock(mutex_);
    if (now - status_at_ >= kStatusPeriod) {
        status_ = source_.status(now);
        status_at_ = now;
    }
}

kube::SourceStatus ClusterFollower::status() const {
    const std::lock_guard lock(mutex_);
    kube::SourceStatus status = status_;
    const auto since = std::chrono::duration_cast<milliseconds>(Clock::now() - status_at_);
    status.heartbeat_age += since;
    for (kube::CollectionStatus& each : status.collections) {
        if (each.last_event_age) {
            *each.last_event_age += since;
        }
        if (each.stale_age && each.stale_age->count() > 0) {
            *each.stale_age += since;
        }
    }
    return status;
}

kube::EventsStatus ClusterFollower::events_status() const {
    return recorder_ ? recorder_->status() : kube::EventsStatus{};
}

}  // namespace penstock::sync
