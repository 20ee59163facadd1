// SPDX-License-Identifier: Apache-2.0
#include "control/kube/api_status.hpp"

#include <algorithm>

namespace penstock::kube {

bool ApiStatus::is_version_too_large() const noexcept {
    return std::ranges::any_of(causes, [](const Cause& cause) {
        return cause.reason == "ResourceVersionTooLarge" ||
               cause.message.find("Too large resource version") != std::string::npos;
    });
}

std::string ApiStatus::to_string() const {
    std::string text = std::to_string(code);
    if (!reason.empty()) {
        text += " " + reason;
    }
    return message.empty() ? text : text + ": " + message;
}

}  // namespace penstock::kube
