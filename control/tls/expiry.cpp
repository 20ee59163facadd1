// SPDX-License-Identifier: Apache-2.0
#include "control/tls/expiry.hpp"

#include <algorithm>
#include <utility>

namespace penstock::tls {

std::optional<ExpiryNotice::What> ExpiryNotice::state_at(Time now, Time valid_from, Time expires) {
    const auto early = std::min<Time::duration>((expires - valid_from) / 4, kEarliest);
    if (now < expires - early) {
        return std::nullopt;
    }
    return now < expires ? What::ExpiresSoon : What::Expired;
}

std::optional<ExpiryNotice::What> ExpiryNotice::due(Time now, Time valid_from, Time expires) {
    if (std::exchange(expires_, expires) != expires) {
        logged_.reset();
    }
    const auto what = state_at(now, valid_from, expires);
    if (!what) {
        logged_.reset();
        return std::nullopt;
    }
    if (logged_ == what && now < logged_at_ + kRepeat) {
        return std::nullopt;
    }
    logged_ = what;
    logged_at_ = now;
    return what;
}

}  // namespace penstock::tls
