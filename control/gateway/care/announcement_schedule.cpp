// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/care/announcement_schedule.hpp"

#include <algorithm>

namespace penstock::gateway {

void AnnouncementSchedule::add(const route::LocalAddress& vip, Time now) {
    const Time due = now + kFirst.front();
    if (entries_.try_emplace(key_of(vip), Entry{now, due, 0}).second) {
        due_.emplace(due, key_of(vip));
    }
}

void AnnouncementSchedule::remove(const route::LocalAddress& vip) {
    if (const auto entry = entries_.find(key_of(vip)); entry != entries_.end()) {
        due_.erase({entry->second.due, entry->first});
        entries_.erase(entry);
    }
}

void AnnouncementSchedule::clear() {
    entries_.clear();
    due_.clear();
}

std::vector<route::LocalAddress> AnnouncementSchedule::take_due(Time now) {
    std::vector<route::LocalAddress> taken;
    if (now < next_batch_) {
        return taken;
    }
    while (taken.size() < kBatch && !due_.empty() && due_.begin()->first <= now) {
        const Key key = due_.begin()->second;
        due_.erase(due_.begin());
        Entry& entry = entries_.at(key);
        ++entry.sent;
        entry.due = entry.sent < kFirst.size() ? std::max(entry.since + kFirst[entry.sent], now)
                                               : std::max(entry.due + kPeriod, now);
        due_.emplace(entry.due, key);
        taken.push_back({std::get<0>(key), std::get<1>(key), std::get<2>(key)});
    }
    if (!taken.empty()) {
        next_batch_ = now + kBatchEvery;
    }
    return taken;
}

std::optional<AnnouncementSchedule::Time> AnnouncementSchedule::next() const {
    return due_.empty() ? std::nullopt : std::optional(std::max(due_.begin()->first, next_batch_));
}

}  // namespace penstock::gateway
