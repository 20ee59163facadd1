// SPDX-License-Identifier: Apache-2.0
#include "control/kube/follow/endpoint_discovery.hpp"

#include <algorithm>
#include <utility>

namespace penstock::kube {

EndpointDiscovery::EndpointDiscovery(std::vector<Collection> candidates, Reflector& reflector,
                                     ServerAccess& server)
    : candidates_(std::move(candidates)), reflector_(reflector), server_(server) {}

EndpointDiscovery::~EndpointDiscovery() {
    stop_looking();
}

EndpointDiscovery::Time EndpointDiscovery::next_deadline() const {
    if ((look_ && look_->has_ended) || reflector_.is_not_served() != not_served_since_.has_value()) {
        return Time::min();
    }
    return look_ ? give_up_at() : std::min(give_up_at(), look_again_);
}

EndpointDiscovery::Time EndpointDiscovery::give_up_at() const {
    if (!not_served_since_ || candidates_.size() == 1) {
        return Time::max();
    }
    if (reflector_.is_listed()) {
        return *not_served_since_ + kGoneAfter;
    }
    // If none is served, the candidates are tried in turn at the pace of the reflector's back-off.
    return is_last() ? reflector_.next_deadline() : *not_served_since_;
}

void EndpointDiscovery::on_time(Time now) {
    if (!reflector_.is_not_served()) {
        not_served_since_.reset();
    } else if (!not_served_since_) {
        not_served_since_ = now;
        if (followed_ > 0 && reflector_.is_listed()) {
            look_again_ = now;  // an upgrade removes a collection when it has added a better one
        }
    }
    // After the last candidate the first one follows.
    if (now >= give_up_at()) {
        follow(is_last() ? 0 : followed_ + 1, now);
        return;
    }
    if (look_ && look_->has_ended) {
        const Look seen = *std::exchange(look_, std::nullopt);
        if (seen.is_served) {
            follow(seen.candidate, now);
        } else if (seen.candidate + 1 < followed_) {
            look_at(seen.candidate + 1);
        } else {
            look_again_ = now + kLookAgain;
        }
    }
    if (!look_ && now >= look_again_) {
        look_at(0);
    }
}

void EndpointDiscovery::on_end(const std::optional<TransportError>& error) {
    look_->has_ended = true;
    look_->is_served = look_->is_served && !error;
}

void EndpointDiscovery::follow(size_t candidate, Time now) {
    stop_looking();
    followed_ = candidate;
    not_served_since_.reset();
    look_again_ = candidate == 0 ? Time::max() : now + kLookAgain;
    server_.log.info("endpoints are read from " + candidates_[candidate].path);
    reflector_.move_to(candidates_[candidate]);
}

void EndpointDiscovery::look_at(size_t candidate) {
    Look& look = look_.emplace(Look{});
    look.candidate = candidate;
    look.id = server_.transport.start(
        {.target = candidates_[candidate].path + "?limit=1", .timeout = kLookTimeout}, *this);
}

void EndpointDiscovery::stop_looking() {
    if (look_) {
        server_.transport.cancel(look_->id);
        look_.reset();
    }
}

}  // namespace penstock::kube
