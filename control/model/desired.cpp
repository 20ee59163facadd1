// SPDX-License-Identifier: Apache-2.0
#include "control/model/desired.hpp"

namespace penstock::model {

std::string ServiceKey::to_string() const {
    std::string text = namespace_name + "/" + name;
    if (!port_name.empty()) {
        text += ":" + port_name;
    }
    return text + "/" + penstock::to_string(protocol);
}

const char* to_string(GatewayMode mode) noexcept {
    switch (mode) {
        case GatewayMode::Node:
            return "node";
        case GatewayMode::External:
            return "external";
    }
    return "unknown";
}

}  // namespace penstock::model
