// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/care/local_sockets.hpp"

#include <array>
#include <fstream>

#include "control/host/socket_table.hpp"

namespace penstock::gateway {

std::optional<LocalListener> parse_socket_line(std::string_view line, Protocol protocol, IpFamily family) {
    const auto row = host::parse_socket_row(line, family);
    if (!row || row->state != (protocol == Protocol::Tcp ? host::kTcpListen : host::kUdpUnconnected) ||
        row->address.is_loopback()) {
        return std::nullopt;
    }
    return LocalListener{protocol, row->address, row->port};
}

std::vector<LocalListener> local_listeners(const std::string& folder) {
    struct File {
        const char* name;
        Protocol protocol;
        IpFamily family;
    };
    constexpr std::array<File, 4> kFiles{{{"tcp", Protocol::Tcp, IpFamily::V4},
                                          {"tcp6", Protocol::Tcp, IpFamily::V6},
                                          {"udp", Protocol::Udp, IpFamily::V4},
                                          {"udp6", Protocol::Udp, IpFamily::V6}}};
    std::vector<LocalListener> listeners;
    for (const File& file : kFiles) {
        std::ifstream in(folder + "/" + file.name);
        for (std::string line; listeners.size() < kListenersMax && std::getline(in, line);) {
            if (const auto listener = parse_socket_line(line, file.protocol, file.family)) {
                listeners.push_back(*listener);
            }
        }
    }
    return listeners;
}

}  // namespace penstock::gateway
