// SPDX-License-Identifier: Apache-2.0
#include "control/semantics/endpoints/slices.hpp"

#include <algorithm>
#include <utility>

#include "control/semantics/notices.hpp"
#include "control/semantics/service_port.hpp"
#include "control/semantics/text.hpp"

namespace penstock::semantics {
namespace {

constexpr const char* kServiceNameLabel = "kubernetes.io/service-name";
constexpr const char* kOverCapacity = "endpoints.kubernetes.io/over-capacity";

const std::string* service_name_in(const kube::EndpointSlice& slice) {
    const auto label = slice.meta.labels.find(kServiceNameLabel);
    return label == slice.meta.labels.end() || label->second.empty() ? nullptr : &label->second;
}

bool is_usable(const kube::EndpointSlice& slice) {
    return slice.address_type == "IPv4" || slice.address_type == "IPv6";
}

}  // namespace

std::optional<kube::ObjectName> service_of(const kube::ObjectName& slice_name,
                                           const kube::EndpointSlice& slice) {
    const std::string* service_name = service_name_in(slice);
    if (service_name == nullptr) {
        return std::nullopt;
    }
    return kube::ObjectName{.namespace_name = slice_name.namespace_name, .name = *service_name};
}

std::vector<ObjectNotice> notices_about(const kube::ObjectName& slice_name,
                                        const kube::EndpointSlice& slice) {
    std::vector<ObjectNotice> notices;
    if (service_name_in(slice) == nullptr) {
        return notices;
    }
    const auto report = [&](model::Notice::Level level, std::string_view reason, std::string message) {
        notices.push_back(
            {.kind = "EndpointSlice",
             .object = slice_name,
             .notice = {.level = level, .reason = std::string(reason), .message = std::move(message)}});
    };
    if (!is_usable(slice)) {
        report(
            model::Notice::Level::Normal, reason::kUnsupportedAddressType,
            "addressType " + quoted(slice.address_type) + " is neither IPv4 nor IPv6; the slice is not used");
        return notices;
    }
    for (const kube::EndpointPort& port : slice.ports) {
        if (!parse_protocol(port.protocol)) {
            report(model::Notice::Level::Warning, reason::kUnsupportedProtocol,
                   "ports: protocol " + quoted(port.protocol) +
                       " is not TCP, UDP or SCTP; the entry is not used");
        }
    }
    return notices;
}

void report_unusable(const ServiceSlices& slices, Notices& notices) {
    for (const NamedSlice& one : slices) {
        if (!is_usable(*one.slice)) {
            notices.mention(reason::kUnsupportedAddressType,
                            "EndpointSlice " + printable(one.name) + " is not used: its addressType " +
                                quoted(one.slice->address_type) + " is neither IPv4 nor IPv6");
        }
    }
}

void report_truncated(const ServiceSlices& slices, Notices& notices) {
    for (const NamedSlice& one : slices) {
        const auto& annotations = one.slice->meta.annotations;
        const auto found = one.slice->from_endpoints ? annotations.find(kOverCapacity) : annotations.end();
        if (found != annotations.end() && found->second == "truncated") {
            notices.warn(reason::kEndpointsTruncated,
                         "the Endpoints object is truncated and some endpoints are missing: use "
                         "EndpointSlices instead");
            return;
        }
    }
}

void put(ServiceSlices& slices, const std::string& name, kube::EndpointSlicePtr slice) {
    const auto place = std::ranges::lower_bound(slices, name, {}, &NamedSlice::name);
    if (place != slices.end() && place->name == name) {
        place->slice = std::move(slice);
    } else {
        slices.insert(place, {.name = name, .slice = std::move(slice)});
    }
}

void take_out(ServiceSlices& slices, const std::string& name) {
    std::erase_if(slices, [&](const NamedSlice& one) { return one.name == name; });
}

}  // namespace penstock::semantics
