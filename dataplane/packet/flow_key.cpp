// SPDX-License-Identifier: Apache-2.0
#include "dataplane/packet/flow_key.hpp"

namespace penstock::packet {
namespace {

// Brackets separate an IPv6 address from its port (RFC 3986, 3.2.2).
std::string endpoint(const IpAddr& address, L4Port port) {
    const std::string text = address.is_v4() ? address.to_string() : "[" + address.to_string() + "]";
    return text + ":" + std::to_string(port);
}

}  // namespace

std::string FlowKey::to_string() const {
    return std::string(penstock::to_string(protocol)) + " " + endpoint(source, source_port) + " -> " +
           endpoint(destination, destination_port);
}

}  // namespace penstock::packet
