#include "control/kube/endpoint_discovery.hpp"

#include <utility>

namespace penstock::kube {

EndpointDiscovery::EndpointDiscovery(std::vector<Collection> candidates, Reflector& reflector, ServerAccess& server)
    : candidates_(std::move(candidates)), reflector_(reflector), server_(server) {}

EndpointDiscovery::~EndpointDiscovery() {
    stop_looking();
}

EndpointDiscovery::Time EndpointDiscovery::next_deadline() const {
    if ((look_ && look_->has_ended) || (reflector_.is_not_served() && !is_last())) {
        return Time::min();
    }
    return look_ ? Time::max() : look_again_;
}

void EndpointDiscovery::on_time(Time now) {
    // Behind the last one the first comes again, after the reflector's back-off.
    if (reflector_.is_not_served() && candidates_.size() > 1 && (!is_last() || now >= reflector_.next_deadline())) {
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
    look_again_ = candidate == 0 ? Time::max() : now + kLookAgain;
    server_.log.info("endpoints are read from " + candidates_[candidate].path);
    reflector_.move_to(candidates_[candidate]);
}

void EndpointDiscovery::look_at(size_t candidate) {
    Look& look = look_.emplace();
    look.candidate = candidate;
    look.id = server_.transport.start({.target = candidates_[candidate].path + "?limit=1", .timeout = kLookTimeout}, *this);
}

void EndpointDiscovery::stop_looking() {
    if (look_) {
        server_.transport.cancel(look_->id);
        look_.reset();
    }
}

}  // namespace penstock::kube
