// SPDX-License-Identifier: Apache-2.0
#include "dataplane/packet/flow_key.hpp"

#include "dataplane/base/socket_address.hpp"

namespace penstock::packet {

std::string FlowKey::to_string() const {
    return std::string(penstock::to_string(protocol)) + " " + SocketAddress{source, source_port}.to_string() +
           " -> " + SocketAddress{destination, destination_port}.to_string();
}

}  // namespace penstock::packet
