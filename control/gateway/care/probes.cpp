// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/care/probes.hpp"

#include <algorithm>

namespace penstock::gateway {

using std::chrono::milliseconds;
using std::chrono::seconds;

ProbeTarget ProbeSchedule::target_of(const model::Probe& probe, const SocketAddress& endpoint) {
    return {.socket = {endpoint.address, probe.port != 0 ? probe.port : endpoint.port},
            .kind = probe.kind,
            .path = probe.kind == model::Probe::Kind::Http ? probe.path : std::string()};
}

void ProbeSchedule::set(const model::ServiceKey& key, std::shared_ptr<const model::Service> service,
                        Time now) {
    const bool is_probed = service != nullptr && service->probe;
    const auto found = users_.find(key);
    if (found == users_.end() && !is_probed) {
        return;
    }
    User& user = found == users_.end() ? users_[key] : found->second;
    user.service = is_probed ? std::move(service) : nullptr;
    touched_.insert(key);
    std::set<Subject*, ByTarget> wanted;
    if (is_probed) {
        for (const auto& set : user.service->sets) {
            for (const auto& endpoint : set.endpoints) {
                ProbeTarget target = target_of(*user.service->probe, endpoint.socket());
                const auto [place, is_new] = subjects_.try_emplace(target);
                Subject& subject = place->second;
                if (is_new) {
                    subject.target = std::move(target);
                }
                subject.users.insert(key);
                agree(subject);
                if (is_new) {
                    plan(subject, now);
                }
                wanted.insert(&subject);
            }
        }
    }
    for (Subject* subject : std::exchange(user.subjects, std::move(wanted))) {
        if (!user.subjects.contains(subject)) {
            release(*subject, key);
        }
    }
}

void ProbeSchedule::release(Subject& subject, const model::ServiceKey& user) {
    subject.users.erase(user);
    if (!subject.users.empty()) {
        agree(subject);
        return;
    }
    if (subject.open) {
        cancelled_.push_back(*subject.open);
        open_.erase(*subject.open);
    } else {
        waiting_.erase(subject.due);
    }
    counters_.down -= subject.verdict == Health::Down ? 1 : 0;
    subjects_.erase(ProbeTarget(subject.target));
}

void ProbeSchedule::agree(Subject& subject) {
    subject.interval = milliseconds::max();
    subject.timeout = milliseconds::max();
    subject.healthy = subject.unhealthy = UINT32_MAX;
    for (const auto& key : subject.users) {
        const model::Probe& probe = *users_.at(key).service->probe;
        subject.interval = std::min<milliseconds>(subject.interval, seconds(probe.interval_s));
        subject.timeout = std::min<milliseconds>(subject.timeout, seconds(probe.timeout_s));
        subject.healthy = std::min(subject.healthy, probe.healthy);
        subject.unhealthy = std::min(subject.unhealthy, probe.unhealthy);
    }
}

void ProbeSchedule::plan(Subject& subject, Time due_at) {
    subject.due = {due_at, ++last_planned_};
    waiting_.emplace(subject.due, &subject);
}

std::vector<ProbeSchedule::Question> ProbeSchedule::due(Time now) {
    std::vector<Question> questions;
    while (!waiting_.empty() && waiting_.begin()->first.first <= now && open_.size() < open_max_) {
        Subject& subject = *waiting_.begin()->second;
        waiting_.erase(waiting_.begin());
        subject.asked_at = now;
        subject.open = ProbeId{++last_id_};
        open_.emplace(*subject.open, &subject);
        ++counters_.sent;
        questions.push_back({*subject.open, subject.target, now + subject.timeout});
    }
    return questions;
}

std::optional<ProbeSchedule::Time> ProbeSchedule::next() const {
    return waiting_.empty() || open_.size() >= open_max_ ? std::nullopt
                                                         : std::optional(waiting_.begin()->first.first);
}

// Returns the subject of the probe and closes the probe; null if it was cancelled.
ProbeSchedule::Subject* ProbeSchedule::take_open(ProbeId id) {
    const auto found = open_.find(id);
    if (found == open_.end()) {
        return nullptr;
    }
    Subject* const subject = found->second;
    open_.erase(found);
    subject->open.reset();
    return subject;
}

void ProbeSchedule::could_not_ask(ProbeId id, Time now) {
    if (Subject* const subject = take_open(id)) {
        --counters_.sent;
        plan(*subject, now + subject->interval);
    }
}

void ProbeSchedule::finished(ProbeId id, bool succeeded, const std::string& why, Time now) {
    Subject* const asked = take_open(id);
    if (asked == nullptr) {
        return;
    }
    Subject& subject = *asked;
    ++(succeeded ? counters_.succeeded : counters_.failed);
    subject.successes = succeeded ? subject.successes + 1 : 0;
    subject.failures = succeeded ? 0 : subject.failures + 1;
    // Without an earlier verdict one success is enough (HC-007): `healthy` applies to endpoints that were
    // down.
    const uint32_t healthy = subject.verdict == Health::Unprobed ? 1 : subject.healthy;
    const Health verdict = subject.successes >= healthy            ? Health::Up
                           : subject.failures >= subject.unhealthy ? Health::Down
                                                                   : subject.verdict;
    if (const Health before = std::exchange(subject.verdict, verdict); before != verdict) {
        counters_.down += verdict == Health::Down ? 1 : 0;
        counters_.down -= before == Health::Down ? 1 : 0;
        ++(verdict == Health::Up ? counters_.turned_up : counters_.turned_down);
        turns_.push_back({subject.target, verdict, *subject.users.begin(), why});
        touched_.insert(subject.users.begin(), subject.users.end());
    }
    // All endpoints of a new Service are probed at once, so that their health is known soon. From then on
    // each has its own time: the second probe is up to a tenth of the interval earlier or later (HC-008).
    milliseconds wait = subject.interval;
    if (!std::exchange(subject.asked_before, true)) {
        const auto spread = static_cast<uint64_t>(wait.count() / 5);
        wait += milliseconds(static_cast<int64_t>(random() % (spread + 1))) -
                milliseconds(static_cast<int64_t>(spread / 2));
    }
    plan(subject, std::max(now, subject.asked_at + wait));
}

SharedHealth ProbeSchedule::health_of(const User& user) const {
    auto health = std::make_shared<EndpointHealth>();
    for (const auto& set : user.service->sets) {
        for (const auto& endpoint : set.endpoints) {
            const Subject& subject = subjects_.at(target_of(*user.service->probe, endpoint.socket()));
            if (subject.verdict != Health::Unprobed) {
                health->verdicts.emplace(endpoint.socket(), subject.verdict);
            }
        }
    }
    return health->verdicts.empty() ? nullptr : SharedHealth(std::move(health));
}

ProbeSchedule::Turns ProbeSchedule::take_turns(Time now) {
    if (turns_.empty()) {
        return {};
    }
    if (now - telling_since_ >= seconds(1)) {
        telling_since_ = now;
        told_ = 0;
    }
    Turns turns{.told = std::exchange(turns_, {})};
    const size_t told = std::min<size_t>(turns.told.size(), kTurnsTold - told_);
    told_ += static_cast<uint32_t>(told);
    left_out_ += turns.told.size() - told;
    turns.told.resize(told);
    turns.left_out = told == 0 ? 0 : std::exchange(left_out_, 0);
    return turns;
}

ProbeSchedule::Results ProbeSchedule::take_results() {
    Results results;
    for (const auto& key : std::exchange(touched_, {})) {
        const auto found = users_.find(key);
        User& user = found->second;
        SharedHealth health = user.service == nullptr ? nullptr : health_of(user);
        const bool is_same =
            health == nullptr || user.told == nullptr ? health == user.told : *health == *user.told;
        if (!is_same) {
            user.told = health;
            results.emplace_back(key, std::move(health));
        }
        if (user.service == nullptr) {
            users_.erase(found);
        }
    }
    return results;
}

ProbeSchedule::Counters ProbeSchedule::counters() const {
    Counters counters = counters_;
    counters.targets = subjects_.size();
    return counters;
}

// splitmix64.
uint64_t ProbeSchedule::random() noexcept {
    uint64_t z = (random_ += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

}  // namespace penstock::gateway
