// SPDX-License-Identifier: Apache-2.0
#include "control/kube/kept_keys.hpp"

#include "control/annotations/refused.hpp"
#include "control/annotations/table.hpp"

namespace penstock::kube {

bool is_kept_label(ObjectKind kind, std::string_view key) noexcept {
    switch (kind) {
        case ObjectKind::EndpointSlice:
        case ObjectKind::Endpoints:
            return key == "kubernetes.io/service-name";
        case ObjectKind::AddressPool:
            return false;
        case ObjectKind::Service:
        case ObjectKind::Node:
        case ObjectKind::Namespace:
            break;
    }
    return true;
}

bool is_kept_annotation(ObjectKind kind, std::string_view key) noexcept {
    if (kind == ObjectKind::AddressPool || kind == ObjectKind::Namespace) {
        return false;
    }
    // Penstock's own annotations are kept even if they are unknown, so that a notice can report them
    // (ANN-G5).
    return key.starts_with(annotations::kNativePrefix) ||
           (kind == ObjectKind::Service &&
            (annotations::find(key) != nullptr || annotations::find_refused(key) != nullptr)) ||
           (kind == ObjectKind::Endpoints && key == "endpoints.kubernetes.io/over-capacity");
}

}  // namespace penstock::kube
