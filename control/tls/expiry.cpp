// SPDX-License-Identifier: Apache-2.0
#include "control/tls/expiry.hpp"

#include <algorithm>
#include <utility>

namespace penstock::tls {

std::optional<ExpiryNotice::What> ExpiryNotice::due(Time now, Time valid_from, Time expires) {
    if (std::exchange(expires_, expires) != expires) {
        logged_.reset();
    }
    const auto early = std::min<Time::duration>((expires - valid_from) / 4, kEarliest);
    if (now < expires - early) {
        logged_.reset();
        return std::nullopt;
    }
    const What what = now < expires ? What::ExpiresSoon : What::Expired;
    if (logged_ == what && now < logged_at_ + kRepeat) {
        return std::nullopt;
    }
    logged_ = what;
    logged_at_ = now;
    return what;
}

}  // namespace penstock::tls
