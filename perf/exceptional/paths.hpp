// The list of what is measured: every kind of packet that takes another way than an established flow's, with the fate that it must have.
#pragma once

#include <memory>
#include <vector>

#include "perf/exceptional/road.hpp"

namespace penstock::perf {

struct Journey {
    Path path;
    std::shared_ptr<Road> road;  // some leave something behind, and have one of their own
};

// The first one is the yardstick: bare segments of established TCP connections. docs/performance.md says what each of the others is.
[[nodiscard]] std::vector<Journey> exceptional_journeys(const test::Ends& ends);

}  // namespace penstock::perf
