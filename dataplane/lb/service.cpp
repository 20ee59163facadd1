#include "dataplane/lb/service.hpp"

#include <algorithm>

namespace penstock::lb {

const char* to_string(SchedulerKind kind) noexcept {
    switch (kind) {
        case SchedulerKind::RoundRobin:
            return "rr";
        case SchedulerKind::Random:
            return "random";
        case SchedulerKind::Maglev:
            return "mh";
    }
    return "unknown";
}

const char* to_string(SourceMode mode) noexcept {
    switch (mode) {
        case SourceMode::Translate:
            return "translate";
        case SourceMode::Keep:
            return "keep";
    }
    return "unknown";
}

const char* to_string(EmptyAction action) noexcept {
    switch (action) {
        case EmptyAction::Reject:
            return "reject";
        case EmptyAction::Drop:
            return "drop";
        case EmptyAction::DropNoLocal:
            return "drop (no local endpoint)";
    }
    return "unknown";
}

const char* to_string(FrontendClass cls) noexcept {
    switch (cls) {
        case FrontendClass::ClusterIp:
            return "ClusterIP";
        case FrontendClass::LoadBalancerIp:
            return "LoadBalancerIP";
        case FrontendClass::ExternalIp:
            return "ExternalIP";
        case FrontendClass::NodePort:
            return "NodePort";
    }
    return "unknown";
}

std::string Service::display_name() const {
    std::string text = namespace_name + "/" + name;
    return port_name.empty() ? text : text + ":" + port_name;
}

bool SourceFilter::allows(const IpAddr& client) const noexcept {
    // Prefix::contains is false across families, so a family without a CIDR is closed (SRC-003), and a list whose entries were all
    // invalid is closed to everyone (SRC-002).
    return !restricted || std::ranges::any_of(allowed, [&](const Prefix& prefix) { return prefix.contains(client); });
}

}  // namespace penstock::lb
