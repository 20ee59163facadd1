// SPDX-License-Identifier: Apache-2.0
#include "control/kube/status/status_writer.hpp"

#include <algorithm>
#include <utility>

namespace penstock::kube {
namespace {

using Action = PatchQueue::Decision::Action;

// "203.0.113.7, 2001:db8::7": entries of `ingress` that `other` lacks; "" if there are none.
std::string missing_from(const std::vector<LoadBalancerIngress>& other,
                         const std::vector<LoadBalancerIngress>& ingress) {
    std::string list;
    for (const LoadBalancerIngress& entry : ingress) {
        const bool is_there = std::ranges::any_of(other, [&](const LoadBalancerIngress& each) {
            return is_same_ingress(
                {{.ip = each.ip, .hostname = each.hostname, .ip_mode = {}, .ports = {}}},
                {{.ip = entry.ip, .hostname = entry.hostname, .ip_mode = {}, .ports = {}}});
        });
        if (!is_there) {
            list.append(list.empty() ? "" : ", ").append(entry.ip.empty() ? entry.hostname : entry.ip);
        }
    }
    return list;
}

// The condition of this type, if it is True.
const Condition* find_true(const ServiceStatus& status, std::string_view type) {
    const auto found = std::ranges::find(status.conditions, type, &Condition::type);
    return found != status.conditions.end() && found->status == "True" ? &*found : nullptr;
}

}  // namespace

StatusWriter::StatusWriter(Transport& transport, WriteLimiter& limiter, Calls calls, RandomSource random)
    : calls_(std::move(calls)),
      queue_({.name = "Services",
              .resource = "services/status",
              .content_type = "application/strategic-merge-patch+json",
              .target = service_status_target},
             transport, limiter, calls_.may_write, std::move(random), *this) {}

void StatusWriter::set(const ObjectName& name, ServiceStatus desired) {
    const auto [found, is_new] = records_.try_emplace(name);
    Record& record = found->second;
    if (!is_new && !record.is_clearing && record.desired == desired) {
        return;
    }
    record.desired = std::move(desired);
    record.is_clearing = false;
    queue_.enqueue_changed(name);
}

void StatusWriter::clear(const ObjectName& name) {
    Record& record = records_[name];
    if (std::exchange(record.is_clearing, true)) {
        return;
    }
    record.desired = {};
    queue_.enqueue_changed(name);
}

void StatusWriter::object_changed(const ObjectName& name) {
    const auto found = records_.find(name);
    if (found == records_.end()) {
        return;
    }
    // A follower does not process its queue, and shall not collect Services that were deleted.
    if (found->second.is_clearing && !calls_.read(name) && queue_.forget(name)) {
        forget(name);
        return;
    }
    queue_.enqueue(name);
}

void StatusWriter::reset() {
    queue_.reset();
    records_.clear();
    foreign_ = 0;
}

void StatusWriter::advance(Time now, WallTime wall) {
    queue_.advance(now, wall);
    const std::scoped_lock lock(mutex_);
    published_foreign_ = foreign_;
}

uint64_t StatusWriter::foreign() const {
    const std::scoped_lock lock(mutex_);
    return published_foreign_;
}

std::optional<ServiceVersion> StatusWriter::read(const ObjectName& name) const {
    auto stored = calls_.read(name);
    // Without a version a write would have no precondition (STATUS-001).
    return stored && !stored->resource_version.empty() ? std::move(stored) : std::nullopt;
}

std::optional<std::string> StatusWriter::version_of(const ObjectName& name) const {
    auto stored = read(name);
    return stored ? std::optional(std::move(stored->resource_version)) : std::nullopt;
}

PatchQueue::Decision StatusWriter::decide(const ObjectName& name, Time now, WallTime wall) {
    const auto found = records_.find(name);
    if (found == records_.end()) {
        return {.action = Action::Forget, .until = {}, .body = {}};
    }
    Record& record = found->second;
    const std::optional<ServiceVersion> stored = read(name);
    if (!stored) {
        if (record.is_clearing) {
            return forget(name);
        }
        set_foreign(record, false);
        record.written.reset();
        return {};  // object_changed() queues it again
    }
    const ServiceVersion* current = &*stored;
    if (record.written && record.written->versions.is_behind(stored->resource_version)) {
        if (record.written->after) {
            current = &*record.written->after;
        } else if (const Time until = record.written->at + kStatusFightInterval; now < until) {
            return {.action = Action::Wait, .until = until, .body = {}};
        }
    }
    StatusPlan plan = plan_status(*current->object, current->resource_version, record.desired, wall);
    set_foreign(record, plan.action == StatusPlan::Action::Foreign);
    switch (plan.action) {
        case StatusPlan::Action::None:
            return confirm(name, record, *current);
        case StatusPlan::Action::Foreign:
            return {};
        case StatusPlan::Action::Write:
            break;
    }
    const bool is_dropped =
        record.written && record.written->desired == record.desired && record.written->after &&
        is_same_status(status_of(*current->object), status_of(*record.written->after->object));
    if (is_dropped) {
        return confirm(name, record, *current);
    }
    return decide_write(record, *stored, *current, std::move(plan.body), now);
}

PatchQueue::Decision StatusWriter::decide_write(Record& record, const ServiceVersion& stored,
                                                const ServiceVersion& current, std::string body, Time now) {
    const bool is_conflict = is_repeated(record);
    if (is_conflict && now < record.written->at + kStatusFightInterval) {
        return {.action = Action::Wait, .until = record.written->at + kStatusFightInterval, .body = {}};
    }
    const bool is_minor = current.object->ingress == record.desired.ingress;
    record.decided = Sent{.before = status_of(*current.object),
                          .desired = record.desired,
                          .stored_version = stored.resource_version,
                          .base_version = current.resource_version,
                          .is_conflict = is_conflict,
                          .is_cancelled = false};
    return {.action = Action::Send, .until = {}, .body = std::move(body), .is_minor = is_minor};
}

void StatusWriter::on_sent(const ObjectName& name) {
    Record& record = records_.at(name);
    record.sent = std::exchange(record.decided, std::nullopt);
}

// `current` has the desired status.
PatchQueue::Decision StatusWriter::confirm(const ObjectName& name, Record& record,
                                           const ServiceVersion& current) {
    // A write without a readable response may have been executed although the store does not have it yet.
    // While the store has the version that the write depends on, the Service is kept, and its next change
    // decides. If the write was not executed, no change follows, and nothing is left to do.
    const std::string& version = current.resource_version;
    if ((record.sent && record.sent->base_version == version) ||
        (record.written && !record.written->after && record.written->versions.is_behind(version))) {
        return {};
    }
    if (const auto sent = std::exchange(record.sent, std::nullopt);
        sent && !sent->is_cancelled && sent->desired == record.desired) {
        report_changes(name, *sent);  // the response was lost
    }
    return record.is_clearing ? forget(name) : PatchQueue::Decision{};
}

PatchQueue::Decision StatusWriter::forget(const ObjectName& name) {
    if (const auto found = records_.find(name); found != records_.end()) {
        set_foreign(found->second, false);
        records_.erase(found);
    }
    return {.action = Action::Forget, .until = {}, .body = {}};
}

void StatusWriter::on_written(const ObjectName& name, const OneResponse& response, Time now) {
    const auto found = records_.find(name);
    if (found == records_.end() || !found->second.sent) {
        return;
    }
    Record& record = found->second;
    Sent sent = std::move(*std::exchange(record.sent, std::nullopt));
    if (!record.written) {
        record.written = Written{};
    }
    Written& written = *record.written;
    written.after.reset();
    written.at = now;
    written.is_superseded = false;
    auto decoded = decode_object(decoder_, ObjectKind::Service, response.body());
    if (decoded && decoded->object && decoded->id.name == name && !decoded->resource_version.empty()) {
        written.after = ServiceVersion{std::get<ServicePtr>(std::move(*decoded->object)),
                                       std::move(decoded->resource_version)};
    }
    written.versions.add(sent.stored_version, sent.base_version,
                         written.after ? written.after->resource_version : "");
    report_changes(name, sent);
    written.desired = std::move(sent.desired);
}

void StatusWriter::on_rejected(const ObjectName& name, const std::string& why) {
    if (const auto found = records_.find(name); found != records_.end()) {
        found->second.sent.reset();
    }
    report(name, Event::Type::Warning, "StatusRejected",
           "The API server rejected the status: " + why + ". It is written again when the Service changes");
}

// Another process writes from now on: a later difference is no conflict, and Events of a cancelled write are
// not reported. Whether it was executed is unknown: see confirm().
void StatusWriter::on_leadership_lost() {
    for (auto& [name, record] : records_) {
        if (record.sent) {
            record.sent->is_cancelled = true;
        }
        if (record.written) {
            record.written->is_superseded = true;
        }
    }
}

void StatusWriter::set_foreign(Record& record, bool is_foreign) {
    if (std::exchange(record.is_foreign, is_foreign) != is_foreign) {
        foreign_ += is_foreign ? 1 : static_cast<uint64_t>(-1);
    }
}

void StatusWriter::report_changes(const ObjectName& name, const Sent& sent) {
    if (sent.is_conflict) {
        report(name, Event::Type::Warning, "StatusConflict",
               "Another writer changed the status that Penstock wrote; it was written again");
        return;
    }
    const bool was_own = find_true(sent.before, kAllocatedCondition) != nullptr;
    if (const std::string gone = missing_from(sent.desired.ingress, sent.before.ingress);
        was_own && !gone.empty()) {
        report(name, Event::Type::Normal, "IPReleased", "Released " + gone);
    }
    if (const std::string added = missing_from(sent.before.ingress, sent.desired.ingress); !added.empty()) {
        report(name, Event::Type::Normal, "IPAllocated", "Allocated " + added);
    }
}

void StatusWriter::report(const ObjectName& name, Event::Type type, std::string reason, std::string message) {
    calls_.report({.kind = "Service",
                   .object = name,
                   .type = type,
                   .reason = std::move(reason),
                   .message = std::move(message),
                   .reporter = {}});
}

}  // namespace penstock::kube
