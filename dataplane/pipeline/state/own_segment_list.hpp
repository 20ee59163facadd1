// SPDX-License-Identifier: Apache-2.0
// Segments that a worker originates (answers/own_segments.hpp), collected until the end of the round. They
// have no received packet whose buffer could be reused, and the stages have no access to other buffers.
#pragma once

#include <array>
#include <cstdint>

#include "dataplane/base/ids.hpp"
#include "dataplane/base/ip.hpp"
#include "dataplane/base/limits.hpp"
#include "dataplane/base/time.hpp"
#include "dataplane/packet/answers/reset.hpp"

namespace penstock::pipeline {

struct OwnSegment {
    std::array<uint8_t, packet::kBareSegmentBytesMax> frame;
    uint16_t length = 0;
    NicPortId egress;
    bool to_host = false;  // goes to the twin of `egress`
};

struct OwnSegments {
    uint32_t count = 0;
    std::array<OwnSegment, limits::kOwnSegmentsMax> at;
    // The next hop requested last, and the time of the request. The many flows of a dead endpoint cause one
    // request a second instead of one each.
    IpAddr asked_for;
    TscTime asked_at;
    [[nodiscard]] uint32_t room() const noexcept { return static_cast<uint32_t>(at.size()) - count; }
};

}  // namespace penstock::pipeline
