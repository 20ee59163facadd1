// EndpointSlices by the Service that they belong to: the label says which, in the slice's own namespace; owner references and slice names
// mean nothing (EP-002).
#pragma once

#include <map>
#include <span>
#include <vector>

#include "control/kube/objects.hpp"
#include "control/semantics/semantics.hpp"

namespace penstock::semantics {

// A slice as it stands in the object set, with the name it stands under.
struct NamedSlice {
    const kube::ObjectName* name = nullptr;
    const kube::EndpointSlice* slice = nullptr;
};

class SliceIndex {
 public:
    // Borrows `slices`, which must live as long. Slices that name no Service are passed over; those of an address type other than IPv4 and
    // IPv6 are passed over with a notice (EP-008).
    SliceIndex(const std::map<kube::ObjectName, kube::EndpointSlice>& slices, std::vector<ObjectNotice>& notices);

    // In the order of their names; the smaller name settles ties between duplicates (EP-004).
    [[nodiscard]] std::span<const NamedSlice> of(const kube::ObjectName& service) const;

 private:
    std::map<kube::ObjectName, std::vector<NamedSlice>> by_service_;
};

}  // namespace penstock::semantics
