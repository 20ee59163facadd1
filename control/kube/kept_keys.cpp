#include "control/kube/kept_keys.hpp"

#include <algorithm>
#include <array>

namespace penstock::kube {
namespace {

constexpr std::string_view kOwnFamily = "penstock.io/";
// Section ANN of the requirement sheet: our own keys and the aliases that a Service may carry instead.
constexpr std::array<std::string_view, 5> kServiceFamilies = {kOwnFamily, "service.beta.kubernetes.io/", "service.kubernetes.io/",
                                                              "service.cilium.io/", "kube-router.io/"};

}  // namespace

bool is_kept_label(ObjectKind kind, std::string_view key) noexcept {
    switch (kind) {
        case ObjectKind::Service:
            return key.starts_with("service.kubernetes.io/");
        case ObjectKind::EndpointSlice:
        case ObjectKind::Endpoints:
            return key == "kubernetes.io/service-name";
        case ObjectKind::Node:
            break;
    }
    return true;
}

bool is_kept_annotation(ObjectKind kind, std::string_view key) noexcept {
    if (kind == ObjectKind::Service) {
        return std::ranges::any_of(kServiceFamilies, [key](std::string_view family) { return key.starts_with(family); });
    }
    return key.starts_with(kOwnFamily);
}

}  // namespace penstock::kube
