// SPDX-License-Identifier: Apache-2.0
#include "control/kube/status/patch_queue.hpp"

#include <algorithm>

#include "control/log/log.hpp"

namespace penstock::kube {
namespace {

// A response is the whole object; the API server accepts objects up to 3 MiB.
constexpr size_t kResponseBytesMax = size_t{4} << 20;

std::string text_of(const ObjectName& name) {
    return name.namespace_name.empty() ? name.name : name.namespace_name + "/" + name.name;
}

}  // namespace

void WrittenVersions::add(const std::string& stored, const std::string& base, std::string after) {
    if (!is_behind(stored)) {
        before_.clear();
    }
    for (const std::string& version : {stored, base}) {
        if (std::ranges::find(before_, version) == before_.end()) {
            before_.push_back(version);
        }
    }
    while (before_.size() > kKeptMax) {
        before_.erase(before_.begin());
    }
    newest_ = std::move(after);
}

bool WrittenVersions::is_behind(const std::string& stored) const {
    return stored != newest_ && std::ranges::find(before_, stored) != before_.end();
}

PatchQueue::PatchQueue(Kind kind, Transport& transport, WriteLimiter& limiter,
                       std::function<bool()> may_write, RandomSource random, Owner& owner)
    : kind_(std::move(kind)),
      transport_(transport),
      limiter_(limiter),
      at_once_max_(status_writes_at_once(limiter.status_per_s())),
      may_write_(std::move(may_write)),
      random_(std::move(random)),
      owner_(owner),
      backoff_(random_) {}

PatchQueue::~PatchQueue() {
    for (const auto& write : writes_) {
        transport_.cancel(write->id);
    }
}

void PatchQueue::enqueue(const ObjectName& name) {
    push(name, entries_[name]);
}

void PatchQueue::enqueue_changed(const ObjectName& name) {
    Entry& entry = entries_[name];
    if (entry.is_rejected) {
        entry.is_rejected = false;
        entry.refused_version.reset();
    }
    entry.is_outdated = entry.is_writing;
    if (std::exchange(entry.is_minor, false)) {  // the new status may be more urgent
        --minor_count_;
        entry.is_queued = false;
    }
    push(name, entry);
}

bool PatchQueue::forget(const ObjectName& name) {
    const auto found = entries_.find(name);
    if (found == entries_.end()) {
        return true;
    }
    if (found->second.is_writing) {
        return false;
    }
    end_delay(name, found->second);
    if (found->second.is_minor) {
        --minor_count_;
        std::erase(minor_, name);
    } else if (found->second.is_queued) {
        std::erase(queue_, name);
    }
    entries_.erase(found);
    return true;
}

void PatchQueue::reset() {
    for (const auto& write : writes_) {
        leave_unsettled(*write);
    }
    writes_.clear();
    entries_.clear();
    queue_.clear();
    minor_.clear();
    minor_count_ = 0;
    delayed_.clear();
}

// A write in progress queues its object when it ends.
void PatchQueue::push(const ObjectName& name, Entry& entry) {
    if (entry.is_queued || entry.is_writing) {
        return;
    }
    end_delay(name, entry);
    entry.is_queued = true;
    queue_.push_back(name);
}

void PatchQueue::delay(const ObjectName& name, Entry& entry, Time until) {
    end_delay(name, entry);
    entry.delayed_until = until;
    delayed_.emplace(until, name);
}

void PatchQueue::end_delay(const ObjectName& name, Entry& entry) {
    if (entry.delayed_until) {
        delayed_.erase({*entry.delayed_until, name});
        entry.delayed_until.reset();
    }
}

void PatchQueue::advance(Time now, WallTime wall) {
    for (auto& write : writes_) {
        if (write->response.is_complete()) {
            finish(*write, now);
        }
    }
    std::erase_if(writes_, [](const auto& write) { return write->response.is_complete(); });
    if (!may_write_()) {
        cancel_writes();
    } else {
        is_leading_ = true;
        while (!delayed_.empty() && delayed_.begin()->first <= now) {
            const ObjectName name = delayed_.begin()->second;
            push(name, entries_.at(name));
        }
        start_writes(now, wall);
    }
    publish();
}

void PatchQueue::cancel_writes() {
    for (const auto& write : writes_) {
        leave_unsettled(*write);
        Entry& entry = entries_.at(write->name);
        entry.is_writing = false;
        push(write->name, entry);
    }
    writes_.clear();
    if (std::exchange(is_leading_, false)) {
        owner_.on_leadership_lost();
    }
}

void PatchQueue::leave_unsettled(const Write& write) {
    transport_.cancel(write.id);
    ++counts_.cancelled;
    unsettled_until_ = std::max(unsettled_until_, write.sent_at + kLeaseDuration);
}

void PatchQueue::start_writes(Time now, WallTime wall) {
    while (!is_finishing_ && writes_.size() < at_once_max_ && now >= not_before_ &&
           now >= limiter_.next_at(WriteLane::Status)) {
        const std::optional<ObjectName> name = take_next();
        if (!name) {
            return;
        }
        Entry& entry = entries_.at(*name);
        if (!process(*name, entry, now, wall)) {
            push(*name, entry);
            return cancel_writes();
        }
    }
}

std::optional<ObjectName> PatchQueue::take_next() {
    takes_minor_ = queue_.empty() || (majors_in_a_row_ >= kMajorWritesInARow && minor_count_ > 0);
    std::deque<ObjectName>& from = takes_minor_ ? minor_ : queue_;
    while (!from.empty()) {
        ObjectName name = std::move(from.front());
        from.pop_front();
        const auto entry = entries_.find(name);
        if (takes_minor_ && (entry == entries_.end() || !entry->second.is_minor)) {
            continue;  // in queue_ since, or forgotten
        }
        if (std::exchange(entry->second.is_minor, false)) {
            --minor_count_;
        }
        entry->second.is_queued = false;
        return name;
    }
    return std::nullopt;
}

bool PatchQueue::process(const ObjectName& name, Entry& entry, Time now, WallTime wall) {
    if (now < entry.not_before) {
        delay(name, entry, entry.not_before);
        return true;
    }
    const std::optional<std::string> stored_version = owner_.version_of(name);
    if (entry.refused_version) {
        if (stored_version == entry.refused_version) {
            return true;
        }
        entry.refused_version.reset();
        entry.is_rejected = false;
    }
    Decision decision = owner_.decide(name, now, wall);
    switch (decision.action) {
        case Decision::Action::Done:
            return true;
        case Decision::Action::Forget:
            entries_.erase(name);
            return true;
        case Decision::Action::Wait:
            delay(name, entry, decision.until);
            return true;
        case Decision::Action::Send:
            break;
    }
    if (decision.is_minor && !takes_minor_ && (!queue_.empty() || minor_count_ > 0)) {
        entry.is_queued = entry.is_minor = true;
        minor_.push_back(name);
        ++minor_count_;
        return true;
    }
    if (!may_write_()) {
        return false;
    }
    majors_in_a_row_ = decision.is_minor ? 0 : majors_in_a_row_ + 1;
    owner_.on_sent(name);
    (void)limiter_.take(WriteLane::Status, now);  // its time has come: see start_writes()
    entry.is_writing = true;
    entry.is_outdated = false;
    auto write = std::make_unique<Write>(Write{.name = name,
                                               .stored_version = stored_version.value_or(""),
                                               .sent_at = now,
                                               .response = OneResponse(kResponseBytesMax)});
    write->id = transport_.start({.method = "PATCH",
                                  .target = kind_.target(name),
                                  .body = std::move(decision.body),
                                  .content_type = kind_.content_type,
                                  .timeout = kStatusTimeout},
                                 write->response);
    writes_.push_back(std::move(write));
    return true;
}

void PatchQueue::finish(Write& write, Time now) {
    Entry& entry = entries_.at(write.name);
    const OneResponse& response = write.response;
    entry.is_writing = false;
    if (response.status() == 401) {
        transport_.credentials_rejected();
    }
    if (response.is_success()) {
        ++counts_.written;
        entry.backoff.reset();
        succeed();
        owner_.on_written(write.name, response, now);
    } else if (response.may_work_later()) {
        fail(write, entry, now);
    } else if (response.status() == 409) {
        ++counts_.conflicts;
        entry.not_before = back_off(entry, now);
    } else if (response.status() == 403) {
        forbid(entry, now);
    } else {
        reject(write, entry);
    }
    if (!entry.refused_version) {
        push(write.name, entry);
    } else if (owner_.version_of(write.name) != entry.refused_version) {
        push(write.name, entry);  // it changed during the request
    }
}

void PatchQueue::succeed() {
    backoff_ = Backoff(random_);
    if (std::exchange(is_forbidden_, false)) {
        log::get("kube").info("the API server accepts the status of {} again", kind_.name);
    }
}

// The object has a backoff of its own: a single object that always fails does not slow down the others.
void PatchQueue::fail(const Write& write, Entry& entry, Time now) {
    ++counts_.failed;
    if (write.response.status() == 0 || write.response.status() >= 500) {  // it may be executed later
        unsettled_until_ = std::max(unsettled_until_, write.sent_at + kLeaseDuration);
    }
    entry.not_before = back_off(entry, now);
    const auto retry_after = write.response.retry_after();
    if (now >= not_before_ || retry_after) {  // writes that fail together count once
        not_before_ = std::max(not_before_, backoff_.after_failure(now, retry_after));
    }
    if (!failure_logged_at_ || now >= *failure_logged_at_ + kStatusFailureLogInterval) {
        failure_logged_at_ = now;
        log::get("kube").warn("cannot write the status of {}: {}; it is retried", kind_.name,
                              transport_.without_secrets(write.response.what()));
    }
}

void PatchQueue::forbid(Entry& entry, Time now) {
    ++counts_.forbidden;
    not_before_ = std::max(not_before_, now + kStatusForbiddenPause);
    entry.not_before = not_before_;
    if (!std::exchange(is_forbidden_, true)) {
        log::get("kube").warn(
            "the API server forbids the status of {} (403): it is not written. Next attempt in {} s. Grant "
            "patch of {}",
            kind_.name, std::chrono::seconds(kStatusForbiddenPause).count(), kind_.resource);
    }
}

void PatchQueue::reject(const Write& write, Entry& entry) {
    const int status = write.response.status();
    if (status == 404) {
        entry.refused_version = write.stored_version;
        ++counts_.gone;
        return;
    }
    if (!entry.is_outdated) {
        entry.refused_version = write.stored_version;
        entry.is_rejected = true;
    }
    ++counts_.rejected;
    const auto answer = decode_status(decoder_, write.response.body());
    const std::string why = transport_.without_secrets(
        answer && !answer->message.empty() ? answer->message : write.response.what());
    log::get("kube").warn("the API server rejects the status of {}: {}", text_of(write.name), why);
    owner_.on_rejected(write.name, why);
}

PatchQueue::Time PatchQueue::back_off(Entry& entry, Time now) {
    if (!entry.backoff) {
        entry.backoff = std::make_unique<Backoff>(random_);
    }
    return entry.backoff->after_failure(now);
}

std::optional<PatchQueue::Time> PatchQueue::next_wake() const {
    if (!is_leading_) {
        return std::nullopt;
    }
    std::optional<Time> wake;
    if (!is_finishing_ && (!queue_.empty() || minor_count_ > 0) && writes_.size() < at_once_max_) {
        wake = std::max(not_before_, limiter_.next_at(WriteLane::Status));
    }
    if (!delayed_.empty()) {
        wake = std::min(wake.value_or(Time::max()), delayed_.begin()->first);
    }
    return wake;
}

WriteCounts PatchQueue::counts() const {
    const std::scoped_lock lock(mutex_);
    return published_;
}

void PatchQueue::publish() {
    counts_.pending = queue_.size() + minor_count_ + delayed_.size() + writes_.size();
    const std::scoped_lock lock(mutex_);
    published_ = counts_;
}

}  // namespace penstock::kube
