// Counts the rooms' hot calls one by one, apart from the stages that make them: a stage that grew is then told from a table that did.
#pragma once

#include "dataplane/base/ip.hpp"
#include "dataplane/config/snapshot.hpp"

namespace penstock::perf {

void count_rooms(IpFamily family, const config::Snapshot& snapshot);

}  // namespace penstock::perf
