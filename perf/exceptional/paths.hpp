// SPDX-License-Identifier: Apache-2.0
// The measured paths: every kind of packet that takes a path other than an established flow's, with its
// required result.
#pragma once

#include <memory>
#include <vector>

#include "perf/exceptional/road.hpp"

namespace penstock::perf {

struct Journey {
    Path path;
    std::shared_ptr<Road> road;  // paths that change the state have a Road of their own
};

// The first one is the yardstick: segments of established TCP connections without data. docs/performance.md
// describes the others.
[[nodiscard]] std::vector<Journey> exceptional_journeys(const test::Ends& ends);

}  // namespace penstock::perf
