// SPDX-License-Identifier: Apache-2.0
#include "control/semantics/service_port.hpp"

#include <algorithm>

#include "control/semantics/text.hpp"

namespace penstock::semantics {

std::optional<Protocol> parse_protocol(std::string_view text) noexcept {
    for (const Protocol protocol : {Protocol::Tcp, Protocol::Udp, Protocol::Sctp}) {
        if (text == to_string(protocol)) {
            return protocol;
        }
    }
    return std::nullopt;
}

std::vector<ValidPort> valid_ports(const kube::Service& service, Notices& notices) {
    std::vector<ValidPort> valid;
    for (size_t i = 0; i < service.ports.size(); ++i) {
        const kube::ServicePort& entry = service.ports[i];
        const std::string where =
            "spec.ports[" + std::to_string(i) + "]" + (entry.name.empty() ? "" : " " + quoted(entry.name));
        const std::optional<Protocol> protocol = parse_protocol(entry.protocol);
        if (!protocol) {
            notices.warn(reason::kUnsupportedProtocol,
                         where + ": protocol " + quoted(entry.protocol) + " is not TCP, UDP or SCTP");
            continue;
        }
        if (!is_l4_port(entry.port)) {
            notices.warn(reason::kInvalidPort,
                         where + ": port " + std::to_string(entry.port) + " is not in 1-65535");
            continue;
        }
        if (entry.node_port != 0 && !is_l4_port(entry.node_port)) {
            notices.warn(reason::kInvalidPort,
                         where + ": nodePort " + std::to_string(entry.node_port) + " is not in 1-65535");
            continue;
        }
        if (!entry.name.empty() && !is_dns_label(entry.name)) {
            notices.warn(reason::kInvalidPort, where +
                                                   ": the port name must be a DNS label: at most 63 of a-z, "
                                                   "0-9 and '-', no '-' at the ends");
            continue;
        }
        const auto number = static_cast<L4Port>(entry.port);
        const auto taken = std::ranges::find_if(valid, [&](const ValidPort& earlier) {
            return earlier.name == entry.name || (earlier.port == number && earlier.protocol == *protocol);
        });
        if (taken != valid.end()) {
            notices.warn(
                reason::kInvalidPort,
                where + (taken->name == entry.name ? ": an earlier entry has the same name"
                                                   : ": an earlier entry has the same port and protocol"));
            continue;
        }
        valid.push_back({.name = entry.name,
                         .protocol = *protocol,
                         .port = number,
                         .node_port = static_cast<L4Port>(entry.node_port)});
    }
    return valid;
}

}  // namespace penstock::semantics
