// SPDX-License-Identifier: Apache-2.0
#include "control/kube/object_id.hpp"

namespace penstock::kube {

const char* to_string(ObjectKind kind) noexcept {
    switch (kind) {
        case ObjectKind::Service:
            return "Service";
        case ObjectKind::EndpointSlice:
            return "EndpointSlice";
        case ObjectKind::Endpoints:
            return "Endpoints";
        case ObjectKind::Node:
            return "Node";
        case ObjectKind::AddressPool:
            return "AddressPool";
        case ObjectKind::Namespace:
            return "Namespace";
    }
    return "object";
}

std::string ObjectId::to_string() const {
    const std::string prefix = std::string(kube::to_string(kind)) + " ";
    return is_cluster_scoped(kind) ? prefix + name.name : prefix + name.namespace_name + "/" + name.name;
}

}  // namespace penstock::kube
