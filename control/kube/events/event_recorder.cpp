// SPDX-License-Identifier: Apache-2.0
#include "control/kube/events/event_recorder.hpp"

#include <algorithm>

#include "control/kube/json/json_fields.hpp"
#include "control/kube/json/json_tree.hpp"
#include "control/log/log.hpp"

namespace penstock::kube {
namespace {

// The response to a write contains the Event with an escaped message of 1 KiB, and as much again of
// managedFields.
constexpr size_t kAnswerBytesKept = 16'384;
constexpr std::chrono::minutes kSweepInterval{1};

// Count of an Event as the API server returns it. Without a count it happened once.
uint64_t count_in(const std::string& json) {
    JsonTree tree;
    if (!tree.parse(json)) {
        return 1;
    }
    FaultList faults;
    return static_cast<uint64_t>(
        std::max<int64_t>(JsonFields(tree, 0, faults).integer("count").value_or(1), 1));
}

bool may_work_later(int status) {
    return status == 401 || status == 408 || status == 429 || status >= 500;
}

}  // namespace

EventRecorder::EventRecorder(Transport& transport, WriteLimiter& limiter, Identify identify,
                             RandomSource random, std::function<void()> wake)
    : transport_(transport),
      limiter_(limiter),
      identify_(std::move(identify)),
      wake_(std::move(wake)),
      backoff_(std::move(random)) {
    published_.enabled = true;
}

EventRecorder::~EventRecorder() {
    if (request_) {
        transport_.cancel(*request_);
    }
}

void EventRecorder::offer(Event event) {
    {
        const std::lock_guard lock(mutex_);
        if (inbox_.size() >= kEventsWaitingMax) {
            ++inbox_dropped_;
            return;
        }
        inbox_.push_back(std::move(event));
        if (inbox_.size() > 1) {
            return;  // the loop has been woken already
        }
    }
    wake_();
}

EventsStatus EventRecorder::status() const {
    const std::lock_guard lock(mutex_);
    EventsStatus status = published_;
    status.waiting += inbox_.size();
    status.dropped_overflow += inbox_dropped_;
    return status;
}

void EventRecorder::advance(Clock::time_point now, WallTime wall) {
    if (answer_.complete) {
        process_response(now);
    }
    std::vector<Event> offered;
    {
        const std::lock_guard lock(mutex_);
        offered.swap(inbox_);
    }
    for (Event& event : offered) {
        accept(std::move(event), now, wall);
    }
    if (now - swept_at_ >= kSweepInterval) {
        sweep(now);
    }
    start_next(now);
    const std::lock_guard lock(mutex_);
    published_ = counts_;
    published_.enabled = !forbidden_until_;
    published_.waiting = waiting();
}

std::optional<EventRecorder::Clock::time_point> EventRecorder::next_wake() const {
    if (request_ || waiting() == 0) {
        return std::nullopt;
    }
    return std::max(not_before_, limiter_.next_at(WriteLane::Ordinary));
}

size_t EventRecorder::waiting() const {
    size_t total = post_ ? 1 : 0;
    for (const auto& queue : queues_) {
        total += queue.size();
    }
    return total;
}

void EventRecorder::accept(Event event, Clock::time_point now, WallTime wall) {
    if (forbidden_until_ && now < *forbidden_until_) {
        ++counts_.dropped_forbidden;
        return;
    }
    // Events that the API server cannot distinguish are one Event here, and long texts are not kept.
    event.message = cut_utf8(event.message, kEventMessageBytesMax);
    const Subject subject{event.kind, event.object};
    auto record = records_.find(event);
    if (record != records_.end() && !record->second.queued &&
        now - record->second.last_seen > kEventRepeats) {
        records_.erase(record);
        record = records_.end();
    }
    if (record != records_.end() && event.once) {
        return;
    }
    // An increase of a count that has not been posted yet costs no request.
    if (record == records_.end() || !record->second.queued) {
        auto& talker =
            talkers_.try_emplace(subject, kEventsPerObjectInterval, kEventsPerObject).first->second;
        if (!talker.take(now)) {
            ++counts_.dropped_rate;
            return;
        }
    }
    if (record == records_.end()) {
        record = records_.emplace(std::move(event), Record{}).first;
        record->second.times.first = wall;
    }
    ++record->second.times.count;
    record->second.times.last = wall;
    record->second.last_seen = now;
    if (!record->second.queued) {
        enqueue(record);
    }
}

void EventRecorder::enqueue(Records::iterator record) {
    if (waiting() >= kEventsWaitingMax) {
        make_room();
    }
    record->second.queued = true;
    const bool is_repeat = record->second.told != 0;
    queues_[is_repeat ? kRepeats : (record->first.type == Event::Type::Warning ? kWarnings : kNormals)]
        .push_back(record);
}

// Drops in order of least loss: count updates, then normal Events, then warnings; the oldest of each first.
void EventRecorder::make_room() {
    for (const Queue from : {kRepeats, kNormals, kWarnings}) {
        auto& queue = queues_[from];
        if (queue.empty()) {
            continue;
        }
        const auto oldest = queue.front();
        queue.pop_front();
        oldest->second.queued = false;
        if (oldest->second.told == 0) {
            records_.erase(oldest);
        }
        ++counts_.dropped_overflow;
        return;
    }
}

void EventRecorder::sweep(Clock::time_point now) {
    swept_at_ = now;
    std::erase_if(records_, [now](const auto& entry) {
        return !entry.second.queued && now - entry.second.last_seen > kEventRepeats;
    });
    std::erase_if(talkers_, [now](const auto& entry) { return entry.second.is_full(now); });
}

void EventRecorder::start_next(Clock::time_point now) {
    while (!request_ && now >= not_before_) {
        if (!post_) {
            const auto queue = std::ranges::find_if(queues_, [](const auto& each) { return !each.empty(); });
            if (queue == queues_.end()) {
                return;
            }
            post_ =
                Post{.record = queue->front(),
                     .step = queue->front()->second.name.empty() ? Post::Step::Create : Post::Step::Repeat};
            queue->pop_front();
        }
        if (now < limiter_.next_at(WriteLane::Ordinary)) {
            return;
        }
        const auto identity = identify_(post_->record->first.kind, post_->record->first.object);
        if (!identity) {
            give_up(&EventsStatus::dropped_gone);
            continue;
        }
        if (limiter_.take(WriteLane::Ordinary, now)) {
            send(*identity);
        }
    }
}

void EventRecorder::send(const ObjectIdentity& identity) {
    const Event& event = post_->record->first;
    Record& record = post_->record->second;
    Request request{.timeout = kEventTimeout};
    if (post_->step == Post::Step::Create) {
        record.name = event_name(event.object.name, number_of(event, identity));
        record.before = 0;
        request.method = "POST";
        request.target = event_target(event);
        request.body = event_body(event, identity, record.name, record.times);
        request.content_type = "application/json";
    } else {
        EventTimes times = record.times;
        times.count += record.before;
        request.method = "PATCH";
        request.target = event_target(event, record.name);
        request.body = post_->step == Post::Step::Find ? found_body(times) : repeat_body(times);
        request.content_type = "application/merge-patch+json";
    }
    post_->count = record.times.count;
    answer_ = {};
    request_ = transport_.start(std::move(request), *this);
}

void EventRecorder::on_head(const ResponseHead& head) {
    answer_.status = head.status;
    answer_.retry_after = head.retry_after;
}

void EventRecorder::on_body(std::string_view bytes) {
    answer_.body += bytes.substr(0, kAnswerBytesKept - std::min(kAnswerBytesKept, answer_.body.size()));
}

void EventRecorder::on_end(const std::optional<TransportError>& error) {
    answer_.error = error;
    answer_.complete = true;
}

void EventRecorder::process_response(Clock::time_point now) {
    request_.reset();
    answer_.complete = false;
    const int status = answer_.error ? 0 : answer_.status;
    if (status >= 200 && status < 300) {
        return post_->step == Post::Step::Find ? adopt() : succeed(true);
    }
    if (status == 401) {
        transport_.credentials_rejected();
    }
    if (answer_.error || may_work_later(status)) {
        return try_again(now);
    }
    if (status == 404 && post_->step == Post::Step::Repeat) {
        post_->step = Post::Step::Create;  // the API server keeps Events for an hour
        return;
    }
    if (status == 404 && post_->step == Post::Step::Find) {
        // The Event expired between the two requests. A server that repeats this is given up.
        post_->step = Post::Step::Create;
        return try_again(now);
    }
    if (status == 409 && post_->step == Post::Step::Create) {
        if (post_->record->first.once) {
            return succeed(false);
        }
        post_->step = Post::Step::Find;
        return;
    }
    // In a namespace that is being deleted nothing can be created; this is not a missing right.
    if (status == 403 && !answer_.body.contains("NamespaceTerminating") &&
        !answer_.body.contains("being terminated")) {
        return forbid(now);
    }
    log::get("kube").debug("event {} about {} {}/{} was refused: {} {}", post_->record->first.reason,
                           post_->record->first.kind, post_->record->first.object.namespace_name,
                           post_->record->first.object.name, status,
                           transport_.without_secrets(answer_.body));
    give_up(&EventsStatus::dropped_failed);
}

void EventRecorder::adopt() {
    post_->record->second.before = count_in(answer_.body);
    post_->step = Post::Step::Repeat;
}

void EventRecorder::succeed(bool is_news) {
    const auto record = post_->record;
    if (is_news) {
        ++(post_->step == Post::Step::Create ? counts_.posted : counts_.repeated);
    }
    record->second.told = post_->count;
    record->second.queued = false;
    post_.reset();
    if (record->second.times.count > record->second.told) {
        enqueue(record);  // repeated meanwhile
    }
    if (forbidden_until_) {
        forbidden_until_.reset();
        said_forbidden_ = false;
        log::get("kube").info("the API server accepts Events again");
    }
}

void EventRecorder::try_again(Clock::time_point now) {
    if (++post_->tries >= kEventTriesMax) {
        log::get("kube").debug(
            "event {} about {}/{} is dropped after {} attempts: {}", post_->record->first.reason,
            post_->record->first.object.namespace_name, post_->record->first.object.name, kEventTriesMax,
            answer_.error ? answer_.error->what : "status " + std::to_string(answer_.status));
        give_up(&EventsStatus::dropped_failed);
    }
    not_before_ = backoff_.after_failure(now, answer_.retry_after);
}

void EventRecorder::give_up(uint64_t EventsStatus::* counter) {
    const auto record = post_->record;
    post_.reset();
    ++(counts_.*counter);
    record->second.queued = false;
    if (record->second.told == 0) {
        records_.erase(record);
    }
}

void EventRecorder::forbid(Clock::time_point now) {
    give_up(&EventsStatus::dropped_forbidden);
    for (auto& queue : queues_) {
        for (const auto record : queue) {
            record->second.queued = false;
        }
        counts_.dropped_forbidden += queue.size();
        queue.clear();
    }
    std::erase_if(records_, [](const auto& entry) { return entry.second.told == 0; });
    forbidden_until_ = now + kEventsForbiddenPause;
    if (!std::exchange(said_forbidden_, true)) {
        log::get("kube").warn(
            "the API server forbids Events (403): no Events are posted, everything else works. Next attempt "
            "in {} minutes. Grant create and patch of events",
            kEventsForbiddenPause.count());
    }
}

}  // namespace penstock::kube
