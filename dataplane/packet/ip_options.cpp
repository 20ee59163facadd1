// SPDX-License-Identifier: Apache-2.0
#include "dataplane/packet/ip_options.hpp"

#include <cstddef>
#include <cstdint>

namespace penstock::packet {

std::optional<DropReason> refuse_options(ByteView options) noexcept {
    constexpr uint8_t kEndOfList = 0, kNoOperation = 1, kLooseSourceRoute = 131, kStrictSourceRoute = 137;
    constexpr size_t kLengthMin = 2;  // type and length, of an option that has a length
    for (size_t at = 0; at < options.size();) {
        const uint8_t type = options[at];
        if (type == kEndOfList) {
            break;
        }
        if (type == kNoOperation) {
            ++at;
            continue;
        }
        const size_t left = options.size() - at;
        if (left < kLengthMin || options[at + 1] < kLengthMin || options[at + 1] > left) {
            return DropReason::BadIpHeader;
        }
        if (type == kLooseSourceRoute || type == kStrictSourceRoute) {
            return DropReason::IpOptions;
        }
        at += options[at + 1];
    }
    return std::nullopt;
}

}  // namespace penstock::packet
