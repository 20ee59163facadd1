// EndpointSlices as Services see them: the label says whose a slice is, in the slice's own namespace; owner references and slice names mean
// nothing (EP-002).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "control/kube/changes.hpp"
#include "control/semantics/notices.hpp"
#include "control/semantics/semantics.hpp"

namespace penstock::semantics {

// The Service that the slice belongs to; nullopt where it names none. One of another address type than IPv4 and IPv6 belongs to its Service
// as well, and gives it no endpoint (EP-008).
[[nodiscard]] std::optional<kube::ObjectName> service_of(const kube::ObjectName& slice_name,
                                                         const kube::EndpointSlice& slice);

// What is wrong with a slice as a whole, whether or not its Service is there.
[[nodiscard]] std::vector<ObjectNotice> notices_about(const kube::ObjectName& slice_name,
                                                      const kube::EndpointSlice& slice);

struct NamedSlice {
    std::string name;
    kube::EndpointSlicePtr slice;  // not null
};

// Of one Service, in the order of their names; the smaller name settles ties between duplicates (EP-004).
using ServiceSlices = std::vector<NamedSlice>;

// EP-015: an Endpoints object holds no more than its controller wrote into it, and that says when it stopped. At most one notice.
void tell_truncated(const ServiceSlices& slices, Notices& notices);

// EP-008: slices that give no endpoint, for who looks at the Service alone.
void tell_unusable(const ServiceSlices& slices, Notices& notices);

// Puts `slice` in, in the place of one of the same name.
void put(ServiceSlices& slices, const std::string& name, kube::EndpointSlicePtr slice);
void take_out(ServiceSlices& slices, const std::string& name);

}  // namespace penstock::semantics
