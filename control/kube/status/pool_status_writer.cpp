// SPDX-License-Identifier: Apache-2.0
#include "control/kube/status/pool_status_writer.hpp"

#include <algorithm>
#include <limits>
#include <string_view>
#include <utility>

#include "control/kube/events/json_text.hpp"

namespace penstock::kube {
namespace {

using Action = PatchQueue::Decision::Action;

ObjectName pool_name(const std::string& name) {
    return {.namespace_name = "", .name = name};
}

void add_count(std::string& json, std::string_view name, uint64_t count) {
    constexpr uint64_t kMax = std::numeric_limits<int64_t>::max();
    add_number(json, name, static_cast<int64_t>(std::min(count, kMax)));
}

void add_counts(std::string& json, std::string_view name, const AddressCounts& counts) {
    add_key(json, name);
    json += '{';
    add_count(json, "total", counts.total);
    add_count(json, "used", counts.used);
    add_count(json, "free", counts.free);
    json += '}';
}

// Only counts differ.
bool differs_in_counts_only(PoolStatus a, const PoolStatus& b) {
    a.ipv4 = b.ipv4;
    a.ipv6 = b.ipv6;
    return a == b;
}

}  // namespace

void update_times(ConditionTimes& times, const std::vector<Condition>& conditions, WallTime now) {
    ConditionTimes next;
    for (const Condition& condition : conditions) {
        const auto before = times.find(condition.type);
        const bool is_same = before != times.end() && before->second.status == condition.status;
        next.insert_or_assign(condition.type,
                              is_same ? before->second : ConditionSince{condition.status, now});
    }
    times = std::move(next);
}

std::string pool_status_body(const PoolStatus& status, std::string_view resource_version,
                             const ConditionTimes& times) {
    std::string json = "{";
    add_key(json, "metadata");
    json += '{';
    add_text(json, "resourceVersion", resource_version);
    json += '}';
    add_key(json, "status");
    json += '{';
    add_counts(json, "ipv4", status.ipv4);
    add_counts(json, "ipv6", status.ipv6);
    add_key(json, "conditions");
    json += '[';
    for (const Condition& condition : status.conditions) {
        json += json.back() == '[' ? "{" : ",{";
        add_text(json, "type", condition.type);
        add_text(json, "status", condition.status);
        add_text(json, "reason", condition.reason);
        add_text(json, "message", condition.message);
        add_text(json, "lastTransitionTime", time_text(times.at(condition.type).since));
        if (status.observed_generation) {
            add_number(json, "observedGeneration", *status.observed_generation);
        }
        json += '}';
    }
    json += "]}}";
    return json;
}

std::string pool_status_target(const ObjectName& name) {
    return "/apis/" + std::string(kPoolApiVersion) + "/addresspools/" + path_segment(name.name) + "/status";
}

PoolStatusWriter::PoolStatusWriter(Transport& transport, WriteLimiter& limiter, Calls calls,
                                   RandomSource random)
    : calls_(std::move(calls)),
      queue_({.name = "AddressPools",
              .resource = "addresspools/status",
              .content_type = "application/merge-patch+json",
              .target = pool_status_target},
             transport, limiter, calls_.may_write, std::move(random), *this) {}

void PoolStatusWriter::set(const std::string& name, PoolStatus desired) {
    const auto [found, is_new] = records_.try_emplace(pool_name(name));
    if (!is_new && found->second.desired == desired) {
        return;
    }
    found->second.desired = std::move(desired);
    queue_.enqueue_changed(found->first);
}

void PoolStatusWriter::forget(const std::string& name) {
    records_.erase(pool_name(name));
    (void)queue_.forget(pool_name(name));  // a write in progress ends, and decide() finds no record
}

void PoolStatusWriter::object_changed(const std::string& name) {
    if (const auto found = records_.find(pool_name(name)); found != records_.end()) {
        queue_.enqueue(found->first);
    }
}

void PoolStatusWriter::reset() {
    queue_.reset();
    records_.clear();
}

std::optional<PoolVersion> PoolStatusWriter::read(const ObjectName& name) const {
    auto stored = calls_.read(name.name);
    // Without a version a write would have no precondition (STATUS-001).
    return stored && !stored->resource_version.empty() ? std::move(stored) : std::nullopt;
}

std::optional<std::string> PoolStatusWriter::version_of(const ObjectName& name) const {
    auto stored = read(name);
    return stored ? std::optional(std::move(stored->resource_version)) : std::nullopt;
}

PatchQueue::Decision PoolStatusWriter::decide(const ObjectName& name, Time now, WallTime wall) {
    const auto found = records_.find(name);
    if (found == records_.end()) {
        return {.action = Action::Forget, .until = {}, .body = {}};
    }
    Record& record = found->second;
    const std::optional<PoolVersion> stored = read(name);
    if (!stored) {
        return {};  // object_changed() queues it again
    }
    if (record.written && record.written->uid != stored->object->meta.uid) {
        record.written.reset();
    }
    std::string base = stored->resource_version;
    if (const auto& written = record.written) {
        if (written->status == record.desired) {
            return {};
        }
        if (const Time until = written->at + kPoolCountsInterval;
            now < until && differs_in_counts_only(written->status, record.desired)) {
            return {.action = Action::Wait, .until = until, .body = {}};
        }
        if (!written->after_version.empty() && written->versions.is_behind(base)) {
            base = written->after_version;
        }
    }
    update_times(record.times, record.desired.conditions, wall);
    std::string body = pool_status_body(record.desired, base, record.times);
    record.sent = Sent{record.desired, stored->resource_version, std::move(base), stored->object->meta.uid};
    return {.action = Action::Send, .until = {}, .body = std::move(body)};
}

void PoolStatusWriter::on_written(const ObjectName& name, const OneResponse& response, Time now) {
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
    // Also a pool that violates a rule has a version.
    const auto decoded = decode_object(decoder_, ObjectKind::AddressPool, response.body());
    written.after_version = decoded && decoded->id.name == name ? decoded->resource_version : "";
    written.versions.add(sent.stored_version, sent.base_version, written.after_version);
    written.status = std::move(sent.status);
    written.uid = std::move(sent.uid);
    written.at = now;
}

void PoolStatusWriter::on_rejected(const ObjectName& name, const std::string& /*why*/) {
    if (const auto found = records_.find(name); found != records_.end()) {
        found->second.sent.reset();
    }
}

// The next leader writes its own status, so each pool is written again after leadership was gained.
void PoolStatusWriter::on_leadership_lost() {
    for (auto& [name, record] : records_) {
        record.sent.reset();
        record.written.reset();
        queue_.enqueue(name);
    }
}

}  // namespace penstock::kube
