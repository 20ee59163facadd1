#include "control/semantics/slice_index.hpp"

#include "control/semantics/notices.hpp"
#include "control/semantics/service_port.hpp"
#include "control/semantics/text.hpp"

namespace penstock::semantics {
namespace {

constexpr const char* kServiceNameLabel = "kubernetes.io/service-name";

}  // namespace

SliceIndex::SliceIndex(const std::map<kube::ObjectName, kube::EndpointSlice>& slices, std::vector<ObjectNotice>& notices) {
    for (const auto& [name, slice] : slices) {
        const auto label = slice.meta.labels.find(kServiceNameLabel);
        if (label == slice.meta.labels.end() || label->second.empty()) {
            continue;
        }
        const auto tell = [&](model::Notice::Level level, std::string_view reason, std::string message) {
            notices.push_back({.kind = "EndpointSlice",
                               .object = name,
                               .notice = {.level = level, .reason = std::string(reason), .message = std::move(message)}});
        };
        if (slice.address_type != "IPv4" && slice.address_type != "IPv6") {
            tell(model::Notice::Level::Normal, reason::kUnsupportedAddressType,
                 "addressType " + quoted(slice.address_type) + " is neither IPv4 nor IPv6; the slice is not used");
            continue;
        }
        for (const kube::EndpointPort& port : slice.ports) {
            if (!parse_protocol(port.protocol)) {
                tell(model::Notice::Level::Warning, reason::kUnsupportedProtocol,
                     "ports: protocol " + quoted(port.protocol) + " is none of TCP, UDP, SCTP; the entry is not used");
            }
        }
        by_service_[{.namespace_name = name.namespace_name, .name = label->second}].push_back({.name = &name, .slice = &slice});
    }
}

std::span<const NamedSlice> SliceIndex::of(const kube::ObjectName& service) const {
    const auto found = by_service_.find(service);
    return found == by_service_.end() ? std::span<const NamedSlice>{} : std::span<const NamedSlice>(found->second);
}

}  // namespace penstock::semantics
