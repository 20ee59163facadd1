// SPDX-License-Identifier: Apache-2.0
// Reports conditions once: when they appear, and again when they are gone. For lasting conditions (a
// quarantined object, a lost conflict), which would otherwise fill the log at every evaluation.
#pragma once

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>
#include <vector>

namespace penstock::sync {

template <typename T>
class Once {
 public:
    struct News {
        std::vector<T> appeared;  // sorted
        std::vector<T> gone;      // sorted
    };

    // `now` is the complete set of current conditions.
    News update(std::set<T> now) {
        News news;
        std::set_difference(now.begin(), now.end(), known_.begin(), known_.end(),
                            std::back_inserter(news.appeared));
        std::set_difference(known_.begin(), known_.end(), now.begin(), now.end(),
                            std::back_inserter(news.gone));
        known_ = std::move(now);
        return news;
    }

 private:
    std::set<T> known_;
};

}  // namespace penstock::sync
