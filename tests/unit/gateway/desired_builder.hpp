// SPDX-License-Identifier: Apache-2.0
// Builders of desired service ports in one line, for the tests of this folder.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "control/gateway/compile/compile.hpp"
#include "control/model/desired.hpp"

namespace penstock::gateway {

inline IpAddr ip(const std::string& text) {
    return IpAddr::parse(text).value();
}
inline Prefix net(const std::string& text) {
    return Prefix::parse(text).value();
}

inline model::ServiceKey key(const std::string& name, Protocol protocol = Protocol::Tcp) {
    return {"default", name, "", protocol};
}

inline model::Frontend external(const std::string& address, L4Port port, bool filtered = false) {
    const IpAddr parsed = ip(address);
    return {lb::FrontendClass::ExternalIp, parsed, parsed.family(), port, 0, filtered};
}
inline model::Frontend load_balancer(const std::string& address, L4Port port) {
    model::Frontend frontend = external(address, port);
    frontend.cls = lb::FrontendClass::LoadBalancerIp;
    return frontend;
}
inline model::Frontend node_port(L4Port port, IpFamily family = IpFamily::V4) {
    return {lb::FrontendClass::NodePort, {}, family, port, 0, false};
}

// One set; all endpoints have port 8080.
inline model::Service service(const std::string& name, std::vector<model::Frontend> frontends,
                              const std::vector<std::string>& endpoints) {
    model::Service out{.key = key(name), .service_port = 80};
    model::BackendSet& set = out.sets.emplace_back();
    for (const auto& address : endpoints) {
        set.endpoints.push_back({ip(address), 8080, 1, "", ""});
        set.family = set.endpoints.back().address.family();
    }
    out.frontends = std::move(frontends);
    return out;
}

inline DesiredServices desired(std::vector<model::Service> services) {
    DesiredServices out;
    for (auto& one : services) {
        const auto name = one.key;
        out.insert_or_assign(name, std::make_shared<const model::Service>(std::move(one)));
    }
    return out;
}

}  // namespace penstock::gateway
