// SPDX-License-Identifier: Apache-2.0
// Status of the leader election and of status writes, as plain values for metrics and pages.
#pragma once

#include <cstdint>
#include <string>

namespace penstock::kube {

struct LeadershipStatus {
    bool is_leader = false;
    std::string holder;        // as last read from the Lease; "" if unknown or released
    uint64_t transitions = 0;  // leaseTransitions, as last read: processes that took the Lease over
    uint64_t acquired = 0;     // times this process became leader
    uint64_t lost = 0;         // times it lost leadership without a release
    uint64_t failures = 0;     // failed requests, conflicts excluded
    bool operator==(const LeadershipStatus&) const = default;
};

// Results of status writes since start, for one kind of object.
struct WriteCounts {
    uint64_t written = 0;
    uint64_t conflicts = 0;  // 409: the object had changed
    uint64_t rejected = 0;   // 422 and other final refusals
    uint64_t forbidden = 0;  // 403
    uint64_t failed = 0;     // no response, 401, 429 or 5xx: retried
    uint64_t gone = 0;       // 404
    uint64_t cancelled = 0;  // leadership ended before the response
    uint64_t pending = 0;    // current: objects whose status is not confirmed yet
    bool operator==(const WriteCounts&) const = default;
};

struct WriteStatus {
    LeadershipStatus leadership;
    WriteCounts services;
    WriteCounts pools;
    uint64_t foreign = 0;  // current: Services left alone because their ingress is of another writer
    bool operator==(const WriteStatus&) const = default;
};

}  // namespace penstock::kube
