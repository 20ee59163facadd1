// SPDX-License-Identifier: Apache-2.0
// EndpointSlices of Services. A label in the slice names its Service in the slice's own namespace. Owner
// references and slice names are not used (EP-002).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "control/kube/changes.hpp"
#include "control/semantics/notices.hpp"
#include "control/semantics/policy.hpp"

namespace penstock::semantics {

// The Service that the slice belongs to; nullopt if the slice names none. A slice of an address type other
// than IPv4 and IPv6 also belongs to its Service, but adds no endpoints (EP-008).
[[nodiscard]] std::optional<kube::ObjectName> service_of(const kube::ObjectName& slice_name,
                                                         const kube::EndpointSlice& slice);

// Notices about the slice as a whole, whether or not its Service exists.
[[nodiscard]] std::vector<ObjectNotice> notices_about(const kube::ObjectName& slice_name,
                                                      const kube::EndpointSlice& slice);

struct NamedSlice {
    std::string name;
    kube::EndpointSlicePtr slice;  // not null
};

// The slices of one Service, sorted by name. The smaller name decides between duplicates (EP-004).
using ServiceSlices = std::vector<NamedSlice>;

// EP-015: an Endpoints object contains no more addresses than its controller wrote, and an annotation shows
// that the controller truncated the list. Adds at most one notice.
void report_truncated(const ServiceSlices& slices, Notices& notices);

// EP-008: notices on the Service about slices that add no endpoints.
void report_unusable(const ServiceSlices& slices, Notices& notices);

// Inserts `slice`, or replaces the one of the same name.
void put(ServiceSlices& slices, const std::string& name, kube::EndpointSlicePtr slice);
void take_out(ServiceSlices& slices, const std::string& name);

}  // namespace penstock::semantics
