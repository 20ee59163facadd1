// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/program/link_report.hpp"

namespace penstock::gateway {

std::string LinkReport::look(bool up, Time now) {
    const std::string state = up ? "link is up" : "link is down";
    std::string text;
    if (now - period_begin_ >= kPeriod) {
        if (changes_ > kToldPerPeriod) {
            text = state + ", after " + std::to_string(changes_ - kToldPerPeriod) + " changes in " +
                   std::to_string(kPeriod.count()) + " s that were not logged";
        }
        changes_ = 0;
    }
    if (up != up_) {
        up_ = up;
        if (changes_++ == 0) {
            period_begin_ = now;
        }
        if (text.empty() && changes_ <= kToldPerPeriod) {
            text = state + (changes_ == kToldPerPeriod
                                ? "; it flaps, further changes are counted but not logged for a while"
                                : "");
        }
    }
    return text;
}

}  // namespace penstock::gateway
