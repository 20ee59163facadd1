// SPDX-License-Identifier: Apache-2.0
#include "control/sync/addresses/assigned_source.hpp"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "control/log/log.hpp"
#include "control/sync/addresses/refusal_report.hpp"
#include "dataplane/base/check.hpp"

namespace penstock::sync {
namespace {

bool watch_descriptor(int epoll, int descriptor) {
    epoll_event event{.events = EPOLLIN, .data = {.fd = descriptor}};
    return ::epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event) == 0;
}

// Resets an eventfd. True if it was signalled.
bool drain(int descriptor) {
    uint64_t wakes = 0;
    return ::read(descriptor, &wakes, sizeof wakes) == sizeof wakes;
}

}  // namespace

Result<std::unique_ptr<AssignedSource>> AssignedSource::open(Settings settings) {
    PENSTOCK_TRY_IN("--allocation-file", auto saved, read_allocations(settings.allocation_file));
    const int wake = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    const int either = ::epoll_create1(EPOLL_CLOEXEC);
    if (wake < 0 || either < 0 || !watch_descriptor(either, wake)) {
        return fail(Errc::Exhausted, std::string("eventfd or epoll: ") + std::strerror(errno));
    }
    const auto pools = settings.pools;
    std::unique_ptr<AssignedSource> source(
        new AssignedSource(std::move(settings), std::move(saved), wake, either));
    AssignedSource& self = *source;
    auto watch = PoolWatch::start(pools, ManifestSource::WhenEmpty::Keep, [&self](kube::Changes changes) {
        {
            const std::lock_guard lock(self.mutex_);
            self.pools_.merge(std::move(changes));
        }
        const uint64_t one = 1;
        // Cannot fail: the counter is far below its maximum.
        [[maybe_unused]] const ssize_t written = ::write(self.wake_descriptor_, &one, sizeof one);
    });
    if (!watch) {
        return in_context("--address-pools", std::move(watch.error()));
    }
    source->pool_watch_ = std::move(*watch);
    return source;
}

AssignedSource::AssignedSource(Settings settings, SavedAllocations saved, int wake_descriptor,
                               int either_descriptor)
    : settings_(std::move(settings)),
      wake_descriptor_(wake_descriptor),
      either_descriptor_(either_descriptor),
      assignment_(settings_.assignment),
      saved_(std::move(saved)) {
    publish();
}

AssignedSource::~AssignedSource() {
    pool_watch_.reset();
    ::close(either_descriptor_);
    ::close(wake_descriptor_);
}

bool AssignedSource::wait(int stop_descriptor) {
    if (stop_descriptor_ != stop_descriptor) {
        PENSTOCK_CHECK(stop_descriptor_ < 0 && watch_descriptor(either_descriptor_, stop_descriptor));
        stop_descriptor_ = stop_descriptor;
    }
    // New pools end the wait like a signal does.
    return settings_.objects->wait(either_descriptor_) || drain(wake_descriptor_);
}

std::optional<kube::Changes> AssignedSource::take_changes() {
    kube::Changes news;
    if (auto objects = settings_.objects->take_changes()) {
        news = std::move(*objects);
        objects_arrived_ = true;
    }
    take_pools(news);
    if (!objects_arrived_) {
        // Kept until the first objects arrive: readers take an incomplete first state for the whole.
        unsent_.merge(std::move(news));
        return std::nullopt;
    }
    const bool is_first = !std::exchange(has_sent_, true);
    unsent_.merge(std::move(news));
    for (const auto& [name, service] : unsent_.services) {
        service != nullptr ? static_cast<void>(services_.insert_or_assign(name, service))
                           : static_cast<void>(services_.erase(name));
    }
    kube::Changes claims = unsent_;
    claim_saved(claims);
    hold_for_unreadable(claims);
    assignment_.note(claims);
    if (assignment_.is_ready()) {
        for (const kube::ObjectName& name : assignment_.run()) {
            report(name);
        }
    }
    for (const kube::ObjectName& name : save()) {
        if (const auto service = services_.find(name); service != services_.end()) {
            unsent_.services.insert_or_assign(name, service->second);
        }
    }
    publish();
    kube::Changes changes = std::exchange(unsent_, {});
    changes.pools.clear();  // no reader has use for them
    changes.pools_listed = false;
    changes.held_addresses.clear();
    for (auto& [name, service] : changes.services) {
        service = with_addresses(name, service);
    }
    if (changes.is_empty() && !is_first) {
        return std::nullopt;
    }
    return changes;
}

void AssignedSource::take_pools(kube::Changes& changes) {
    const std::lock_guard lock(mutex_);
    changes.merge(std::exchange(pools_, {}));
}

// A saved address counts like one in the status of a Service of a cluster.
void AssignedSource::claim_saved(kube::Changes& changes) const {
    for (auto& [name, service] : changes.services) {
        const auto saved = saved_.find(name);
        if (service != nullptr && saved != saved_.end()) {
            auto claimed = std::make_shared<kube::Service>(*service);
            claimed->ingress = ingress_of(saved->second);
            claimed->conditions = {{.type = std::string(kube::kAllocatedCondition),
                                    .status = "True",
                                    .reason = "Saved",
                                    .message = {}}};
            service = std::move(claimed);
        }
    }
}

// A Service whose manifest cannot be read is absent after a start. Its address stays its own as long as some
// manifest of a Service is unreadable.
void AssignedSource::hold_for_unreadable(kube::Changes& changes) {
    bool has_unreadable = false;
    for (const kube::CollectionStatus& each : settings_.objects->status().collections) {
        has_unreadable = has_unreadable || (each.kind == "services" && each.quarantined > 0);
    }
    for (const auto& [name, addresses] : saved_) {
        const bool is_held = has_unreadable && !services_.contains(name);
        if (is_held && held_.insert(name).second) {
            changes.held_addresses.insert_or_assign(name, addresses);
        } else if (!is_held && held_.erase(name) != 0) {
            changes.held_addresses.insert_or_assign(name, std::vector<IpAddr>());
        }
    }
}

// Saves the allocations if they have changed, and returns the Services with another address in the file than
// before. On failure the file and saved_ stay as they are; the next round tries again.
std::vector<kube::ObjectName> AssignedSource::save() {
    if (!assignment_.is_ready()) {
        return {};
    }
    SavedAllocations now;
    for (const kube::ObjectName& name : held_) {
        now.emplace(name, saved_.at(name));
    }
    for (const kube::ObjectName& name : assignment_.owned()) {
        std::vector<IpAddr> addresses;
        for (const ipam::AllocatedAddress& each : assignment_.allocation_of(name)->addresses) {
            addresses.push_back(each.address);
        }
        if (!addresses.empty()) {
            now.emplace(name, std::move(addresses));
        }
    }
    if (now == saved_) {
        return {};
    }
    if (const Status written = write_allocations(settings_.allocation_file, now); !written) {
        if (std::exchange(save_error_, written.error().what) != written.error().what) {
            log::get("sync").error("no new address is given out: {}", written.error().what);
        }
        return {};
    }
    if (!std::exchange(save_error_, {}).empty()) {
        log::get("sync").info("{} is written again", settings_.allocation_file);
    }
    std::vector<kube::ObjectName> changed;
    for (const auto& [name, addresses] : now) {
        if (const auto before = saved_.find(name); before == saved_.end() || before->second != addresses) {
            changed.push_back(name);
        }
    }
    for (const auto& [name, addresses] : saved_) {
        if (!now.contains(name)) {
            changed.push_back(name);
        }
    }
    saved_ = std::move(now);
    return changed;
}

kube::ServicePtr AssignedSource::with_addresses(const kube::ObjectName& name,
                                                const kube::ServicePtr& service) const {
    const auto saved = saved_.find(name);
    if (service == nullptr || saved == saved_.end()) {
        return service;
    }
    auto shown = std::make_shared<kube::Service>(*service);
    const auto status = assignment_.is_ready() ? assignment_.status_of(name) : std::nullopt;
    // The status has the errors of ports (LB-017). It does not count before the pools are known, and not
    // while its addresses are not saved.
    const auto saved_ingress = ingress_of(saved->second);
    const auto same_address = [](const auto& a, const auto& b) { return a.ip == b.ip; };
    shown->ingress = status && std::ranges::equal(status->ingress, saved_ingress, same_address)
                         ? status->ingress
                         : saved_ingress;
    return shown;
}

void AssignedSource::report(const kube::ObjectName& name) {
    const ipam::Allocation* allocation = assignment_.allocation_of(name);
    const auto refusal = allocation == nullptr ? std::nullopt : refusal_of(*allocation);
    if (!refusal) {
        reported_.erase(name);
        return;
    }
    if (std::string& known = reported_[name]; known != refusal->message) {
        known = refusal->message;
        log::get("sync").warn("service {}/{}: {}: {}", name.namespace_name, name.name, refusal->reason,
                              refusal->message);
    }
}

kube::SourceStatus AssignedSource::status() const {
    kube::SourceStatus status = settings_.objects->status();
    for (kube::CollectionStatus& pools : pool_watch_->status().collections) {
        status.collections.push_back(std::move(pools));
    }
    return status;
}

AddressStatus AssignedSource::address_status() const {
    const std::lock_guard lock(mutex_);
    return status_;
}

void AssignedSource::publish() {
    if (assignment_.pools_refused() != pools_refused_) {
        pools_refused_ = assignment_.pools_refused();
        pools_refused_.empty()
            ? log::get("sync").info("the address pools are valid again")
            : log::get("sync").error("address pools refused, the last valid ones stay in use: {}",
                                     pools_refused_);
    }
    AddressStatus status = address_status_of(assignment_);
    status.phase = assignment_.is_ready() ? "assigning" : "waiting";
    const std::lock_guard lock(mutex_);
    status_ = std::move(status);
}

}  // namespace penstock::sync
