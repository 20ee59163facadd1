// SPDX-License-Identifier: Apache-2.0
// coordination.k8s.io/v1 Lease: the record of the current leader, and the requests that change it
// (LEASE-001). Changes are merge patches of single fields, so other fields are preserved. Pure.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "control/kube/json/json_tree.hpp"
#include "control/kube/object_id.hpp"
#include "dataplane/base/result.hpp"

namespace penstock::kube {

// LEASE-002. A leader that did not renew for kRenewDeadline stops writing; others take over
// kLeaseDuration after the last change of the record. The difference is the time in which requests of the
// former leader may still arrive.
inline constexpr std::chrono::seconds kLeaseDuration{15};
inline constexpr std::chrono::seconds kRenewDeadline{10};
inline constexpr std::chrono::seconds kRetryPeriod{2};

// spec of a Lease. A follower compares it with the one it observed before.
struct LeaseRecord {
    std::string holder;                              // holderIdentity; "": released, or never held
    std::chrono::seconds duration = kLeaseDuration;  // leaseDurationSeconds, at least 1 s
    std::string acquire_time;                        // as written; only compared, never read as a time
    std::string renew_time;
    int32_t transitions = 0;  // leaseTransitions
    bool operator==(const LeaseRecord&) const = default;
};

struct Lease {
    std::string resource_version;
    LeaseRecord record;
};

// Reads a Lease in the body of a response. Error: not JSON, a field of another type, or no resourceVersion.
[[nodiscard]] Result<Lease> parse_lease(JsonTree& tree, std::string_view json);

// "/apis/coordination.k8s.io/v1/namespaces/NAMESPACE/leases", followed by "/NAME" if it is not empty.
[[nodiscard]] std::string lease_target(std::string_view namespace_name, std::string_view name = {});

using WallTime = std::chrono::system_clock::time_point;
// Body of a POST: a new Lease, held by `identity`.
[[nodiscard]] std::string lease_create_body(const ObjectName& name, std::string_view identity, WallTime now);
// Bodies of PATCH (application/merge-patch+json), valid only for the version in `lease`.
[[nodiscard]] std::string lease_claim_body(const Lease& lease, std::string_view identity, WallTime now);
[[nodiscard]] std::string lease_renew_body(const Lease& lease, std::string_view identity, WallTime now);
// The next elector acquires a released Lease at once (LEASE-003).
[[nodiscard]] std::string lease_release_body(const Lease& lease, WallTime now);

}  // namespace penstock::kube
