// SPDX-License-Identifier: Apache-2.0
// Short notations of configurations and ports for tests of flow rules.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "control/gateway/rules/flow_plan.hpp"
#include "desired_builder.hpp"

namespace penstock::gateway {

inline drivers::FlowSupport takes_all() {
    return {.snat_to_queue = {true, ""},
            .vip_isolate = {true, ""},
            .source_drop = {true, ""},
            .vip_mark = {true, ""},
            .counts = true};
}

inline std::shared_ptr<const route::PrefixSet> blocked(const std::vector<std::string>& prefixes) {
    std::vector<Prefix> list;
    for (const auto& text : prefixes) {
        list.push_back(net(text));
    }
    return list.empty() ? nullptr : std::make_shared<const route::PrefixSet>(std::move(list));
}

// A service port with frontends that deny these ranges.
inline model::Service denying(const std::string& name, std::vector<model::Frontend> frontends,
                              const std::vector<std::string>& ranges) {
    auto out = service(name, std::move(frontends), {"10.0.0.1"});
    for (auto& frontend : out.frontends) {
        frontend.filtered = true;
    }
    for (const auto& text : ranges) {
        out.source_ranges.push_back(net(text));
    }
    std::ranges::sort(out.source_ranges);
    out.source_ranges_deny = true;
    return out;
}

inline FlowConfig flow_config(std::vector<model::Service> services, std::vector<nat::SnatAddress> snat = {},
                              const std::vector<std::string>& blocklist = {},
                              std::vector<route::LocalAddress> addresses = {}) {
    Compiler compiler;
    const auto all = desired(std::move(services));
    std::vector<model::ServiceKey> keys;
    for (const auto& [name, one] : all) {
        keys.push_back(name);
    }
    const std::vector<model::PortAddress> own{{"pen0", ip("192.0.2.1"), 24, true}};
    compiler.run({all, {}, own}, keys);
    return {.services = compiler.compiled()->table,
            .routes = route::RouteTable::build({}, {}, std::move(addresses), {}),
            .snat = std::make_shared<const nat::SnatConfig>(nat::SnatConfig{.addresses = snat}),
            .blocked = blocked(blocklist)};
}

inline config::Snapshot snapshot_of(const FlowConfig& config) {
    config::Snapshot out;
    out.services = config.services;
    out.routes = config.routes;
    out.snat = config.snat;
    out.blocked_sources = config.blocked;
    return out;
}

}  // namespace penstock::gateway
