// SPDX-License-Identifier: Apache-2.0
#include "control/semantics/notices.hpp"

#include <algorithm>
#include <utility>

namespace penstock::semantics {

void Notices::add(model::Notice::Level level, std::string_view reason, std::string message) {
    OfOneReason& same = by_reason_[reason];
    if (same.kept.size() >= kNoticesPerReason) {
        ++same.more;
        return;
    }
    model::Notice notice{.level = level, .reason = std::string(reason), .message = std::move(message)};
    if (std::ranges::find(same.kept, notice) == same.kept.end()) {
        same.kept.push_back(std::move(notice));
    }
}

void Notices::append_to(Notices& other) const {
    for (const auto& [reason, same] : by_reason_) {
        for (const model::Notice& notice : same.kept) {
            other.add(notice.level, reason, notice.message);
        }
        if (same.more != 0) {
            other.by_reason_[reason].more += same.more;
        }
    }
}

std::vector<model::Notice> Notices::sorted() const {
    std::vector<model::Notice> all;
    for (const auto& [reason, same] : by_reason_) {
        all.insert(all.end(), same.kept.begin(), same.kept.end());
        if (same.more != 0) {
            all.push_back({.level = model::Notice::Level::Warning,
                           .reason = std::string(reason),
                           .message = "and " + std::to_string(same.more) + " more of this kind"});
        }
    }
    std::ranges::sort(all);
    return all;
}

}  // namespace penstock::semantics
