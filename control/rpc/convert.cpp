#include "control/rpc/convert.hpp"

#include <algorithm>
#include <utility>

#include "control/rpc/convert_rules.hpp"

namespace penstock::rpc {

v1::Protocol to_proto(Protocol protocol) {
    switch (protocol) {
        case Protocol::Tcp:
            return v1::PROTOCOL_TCP;
        case Protocol::Udp:
            return v1::PROTOCOL_UDP;
        case Protocol::Sctp:
            return v1::PROTOCOL_SCTP;
    }
    return v1::PROTOCOL_UNSPECIFIED;
}

v1::Scheduler to_proto(lb::SchedulerKind scheduler) {
    switch (scheduler) {
        case lb::SchedulerKind::RoundRobin:
            return v1::SCHEDULER_RR;
        case lb::SchedulerKind::Random:
            return v1::SCHEDULER_RANDOM;
        case lb::SchedulerKind::Maglev:
            return v1::SCHEDULER_MH;
        case lb::SchedulerKind::WeightedRoundRobin:
            return v1::SCHEDULER_WRR;
        case lb::SchedulerKind::LeastConnection:
            return v1::SCHEDULER_LC;
        case lb::SchedulerKind::WeightedLeastConnection:
            return v1::SCHEDULER_WLC;
        case lb::SchedulerKind::SourceHash:
            return v1::SCHEDULER_SH;
        case lb::SchedulerKind::DestinationHash:
            return v1::SCHEDULER_DH;
        case lb::SchedulerKind::ShortestExpectedDelay:
            return v1::SCHEDULER_SED;
        case lb::SchedulerKind::NeverQueue:
            return v1::SCHEDULER_NQ;
        case lb::SchedulerKind::TwoChoices:
            return v1::SCHEDULER_P2C;
    }
    return v1::SCHEDULER_UNSPECIFIED;
}

v1::SourceMode to_proto(lb::SourceMode mode) {
    switch (mode) {
        case lb::SourceMode::Translate:
            return v1::SOURCE_MODE_TRANSLATE;
        case lb::SourceMode::Keep:
            return v1::SOURCE_MODE_KEEP;
    }
    return v1::SOURCE_MODE_UNSPECIFIED;
}

v1::EmptyAction to_proto(lb::EmptyAction action) {
    switch (action) {
        case lb::EmptyAction::Reject:
            return v1::EMPTY_ACTION_REJECT;
        case lb::EmptyAction::Drop:
            return v1::EMPTY_ACTION_DROP;
        case lb::EmptyAction::DropNoLocal:
            return v1::EMPTY_ACTION_DROP_NO_LOCAL;
    }
    return v1::EMPTY_ACTION_UNSPECIFIED;
}

v1::FrontendClass to_proto(lb::FrontendClass cls) {
    switch (cls) {
        case lb::FrontendClass::ClusterIp:
            return v1::FRONTEND_CLASS_CLUSTER_IP;
        case lb::FrontendClass::LoadBalancerIp:
            return v1::FRONTEND_CLASS_LOAD_BALANCER_IP;
        case lb::FrontendClass::ExternalIp:
            return v1::FRONTEND_CLASS_EXTERNAL_IP;
        case lb::FrontendClass::NodePort:
            return v1::FRONTEND_CLASS_NODE_PORT;
    }
    return v1::FRONTEND_CLASS_UNSPECIFIED;
}

v1::Identity::Mode to_proto(model::GatewayMode mode) {
    switch (mode) {
        case model::GatewayMode::Node:
            return v1::Identity::MODE_NODE;
        case model::GatewayMode::External:
            return v1::Identity::MODE_EXTERNAL;
    }
    return v1::Identity::MODE_UNSPECIFIED;
}

v1::SocketAddress to_proto(const IpAddr& address, L4Port port) {
    v1::SocketAddress message;
    message.set_address(address.to_string());
    message.set_port(port);
    return message;
}

v1::ServiceKey to_proto(const model::ServiceKey& key) {
    v1::ServiceKey message;
    message.set_namespace_(key.namespace_name);
    message.set_name(key.name);
    message.set_port_name(key.port_name);
    message.set_protocol(to_proto(key.protocol));
    return message;
}

v1::Notice to_proto(const model::Notice& notice) {
    v1::Notice message;
    message.set_level(notice.level == model::Notice::Level::Normal ? v1::Notice::LEVEL_NORMAL
                                                                   : v1::Notice::LEVEL_WARNING);
    message.set_reason(notice.reason);
    message.set_message(notice.message);
    return message;
}

v1::ObservedNotice to_proto(const model::ObservedNotice& observed) {
    v1::ObservedNotice message;
    *message.mutable_key() = to_proto(observed.key);
    *message.mutable_notice() = to_proto(observed.notice);
    return message;
}

v1::Environment to_proto(const model::Environment& environment) {
    v1::Environment message;
    *message.mutable_node_ports() = to_proto(environment.node_ports);
    for (const auto& cidr : environment.pod_cidrs) {
        message.add_pod_cidrs(cidr.to_string());
    }
    message.set_rejects_closed_vip_ports(environment.rejects_closed_vip_ports);
    message.set_node_not_eligible(!environment.node_eligible);
    message.set_vips_withheld(environment.vips_withheld);
    return message;
}

v1::NodePortAddresses to_proto(const model::NodePortAddresses& addresses) {
    v1::NodePortAddresses message;
    for (const auto& prefix : addresses.within) {
        message.add_within(prefix.to_string());
    }
    message.set_primary_only(addresses.primary_only);
    for (const auto& address : addresses.node_addresses) {
        message.add_node_addresses(address.to_string());
    }
    return message;
}

v1::Identity to_proto(const model::GatewayIdentity& identity) {
    v1::Identity message;
    message.set_gateway_name(identity.gateway_name);
    message.set_mode(to_proto(identity.mode));
    message.set_node_name(identity.node_name);
    message.mutable_labels()->insert(identity.labels.begin(), identity.labels.end());
    for (const auto& address : identity.addresses) {
        auto& out = *message.add_addresses();
        out.set_port_name(address.port_name);
        out.set_address(address.address.to_string());
        out.set_prefix_length(address.prefix_length);
        out.set_configured(address.configured);
    }
    for (const auto& prefix : identity.routed_prefixes) {
        message.add_routed_prefixes(prefix.to_string());
    }
    return message;
}

Result<Protocol> from_proto(v1::Protocol protocol) {
    switch (protocol) {
        case v1::PROTOCOL_UNSPECIFIED:
            return invalid("protocol is missing");
        case v1::PROTOCOL_TCP:
            return Protocol::Tcp;
        case v1::PROTOCOL_UDP:
            return Protocol::Udp;
        case v1::PROTOCOL_SCTP:
            return Protocol::Sctp;
        default:
            return unknown("protocol", protocol);
    }
}

Result<lb::SchedulerKind> from_proto(v1::Scheduler scheduler) {
    switch (scheduler) {
        case v1::SCHEDULER_UNSPECIFIED:
        case v1::SCHEDULER_RR:
            return lb::SchedulerKind::RoundRobin;
        case v1::SCHEDULER_RANDOM:
            return lb::SchedulerKind::Random;
        case v1::SCHEDULER_MH:
            return lb::SchedulerKind::Maglev;
        case v1::SCHEDULER_WRR:
            return lb::SchedulerKind::WeightedRoundRobin;
        case v1::SCHEDULER_LC:
            return lb::SchedulerKind::LeastConnection;
        case v1::SCHEDULER_WLC:
            return lb::SchedulerKind::WeightedLeastConnection;
        case v1::SCHEDULER_SH:
            return lb::SchedulerKind::SourceHash;
        case v1::SCHEDULER_DH:
            return lb::SchedulerKind::DestinationHash;
        case v1::SCHEDULER_SED:
            return lb::SchedulerKind::ShortestExpectedDelay;
        case v1::SCHEDULER_NQ:
            return lb::SchedulerKind::NeverQueue;
        case v1::SCHEDULER_P2C:
            return lb::SchedulerKind::TwoChoices;
        default:
            return unknown("scheduler", scheduler);
    }
}

Result<lb::SourceMode> from_proto(v1::SourceMode mode) {
    switch (mode) {
        case v1::SOURCE_MODE_UNSPECIFIED:
        case v1::SOURCE_MODE_TRANSLATE:
            return lb::SourceMode::Translate;
        case v1::SOURCE_MODE_KEEP:
            return lb::SourceMode::Keep;
        default:
            return unknown("source mode", mode);
    }
}

Result<lb::EmptyAction> from_proto(v1::EmptyAction action) {
    switch (action) {
        case v1::EMPTY_ACTION_UNSPECIFIED:
        case v1::EMPTY_ACTION_REJECT:
            return lb::EmptyAction::Reject;
        case v1::EMPTY_ACTION_DROP:
            return lb::EmptyAction::Drop;
        case v1::EMPTY_ACTION_DROP_NO_LOCAL:
            return lb::EmptyAction::DropNoLocal;
        default:
            return unknown("empty action", action);
    }
}

Result<lb::FrontendClass> from_proto(v1::FrontendClass cls) {
    switch (cls) {
        case v1::FRONTEND_CLASS_UNSPECIFIED:
            return invalid("frontend class is missing");
        case v1::FRONTEND_CLASS_CLUSTER_IP:
            return lb::FrontendClass::ClusterIp;
        case v1::FRONTEND_CLASS_LOAD_BALANCER_IP:
            return lb::FrontendClass::LoadBalancerIp;
        case v1::FRONTEND_CLASS_EXTERNAL_IP:
            return lb::FrontendClass::ExternalIp;
        case v1::FRONTEND_CLASS_NODE_PORT:
            return lb::FrontendClass::NodePort;
        default:
            return unknown("frontend class", cls);
    }
}

Result<model::GatewayMode> from_proto(v1::Identity::Mode mode) {
    switch (mode) {
        case v1::Identity::MODE_UNSPECIFIED:
            return invalid("mode is missing");
        case v1::Identity::MODE_NODE:
            return model::GatewayMode::Node;
        case v1::Identity::MODE_EXTERNAL:
            return model::GatewayMode::External;
        default:
            return unknown("mode", mode);
    }
}

Result<model::ServiceKey> from_proto(const v1::ServiceKey& key) {
    const auto protocol = from_proto(key.protocol());
    if (!protocol) {
        return std::unexpected(protocol.error());
    }
    for (const auto& [field, name, may_be_empty] :
         {std::tuple("namespace", std::string_view(key.namespace_()), false),
          std::tuple("name", std::string_view(key.name()), false),
          std::tuple("port_name", std::string_view(key.port_name()), true)}) {
        if (auto status = check_name(field, name, may_be_empty); !status) {
            return std::unexpected(std::move(status.error()));
        }
    }
    return model::ServiceKey{key.namespace_(), key.name(), key.port_name(), *protocol};
}

Result<model::Notice> from_proto(const v1::Notice& notice) {
    model::Notice out{model::Notice::Level::Warning, notice.reason(), notice.message()};
    switch (notice.level()) {
        case v1::Notice::LEVEL_UNSPECIFIED:
        case v1::Notice::LEVEL_WARNING:
            break;
        case v1::Notice::LEVEL_NORMAL:
            out.level = model::Notice::Level::Normal;
            break;
        default:
            return unknown("notice level", notice.level());
    }
    return out;
}

Result<model::ObservedNotice> from_proto(const v1::ObservedNotice& observed) {
    auto key = from_proto(observed.key());
    auto notice = from_proto(observed.notice());
    if (!key || !notice) {
        return in_context("observed notice about " + text_of(observed.key()),
                          !key ? key.error() : notice.error());
    }
    return model::ObservedNotice{std::move(*key), std::move(*notice)};
}

Result<model::NodePortAddresses> from_proto(const v1::NodePortAddresses& addresses) {
    model::NodePortAddresses out;
    out.primary_only = addresses.primary_only();
    for (int i = 0; i < addresses.within_size(); ++i) {
        auto prefix = Prefix::parse(addresses.within(i));
        if (!prefix) {
            return in_context("node_ports." + indexed("within", i), std::move(prefix.error()));
        }
        out.within.push_back(*prefix);
    }
    for (int i = 0; i < addresses.node_addresses_size(); ++i) {
        auto address = IpAddr::parse(addresses.node_addresses(i));
        if (!address) {
            return in_context("node_ports." + indexed("node_addresses", i), std::move(address.error()));
        }
        out.node_addresses.push_back(*address);
    }
    return out;
}

Result<model::Environment> from_proto(const v1::Environment& environment) {
    model::Environment out;
    auto node_ports = from_proto(environment.node_ports());
    if (!node_ports) {
        return invalid("environment." + node_ports.error().what);
    }
    out.node_ports = std::move(*node_ports);
    for (int i = 0; i < environment.pod_cidrs_size(); ++i) {
        auto cidr = Prefix::parse(environment.pod_cidrs(i));
        if (!cidr) {
            return in_context("environment." + indexed("pod_cidrs", i), std::move(cidr.error()));
        }
        out.pod_cidrs.push_back(*cidr);
    }
    sort_unique(out.pod_cidrs);
    out.rejects_closed_vip_ports = environment.rejects_closed_vip_ports();
    out.node_eligible = !environment.node_not_eligible();
    out.vips_withheld = environment.vips_withheld();
    return out;
}

Result<model::GatewayIdentity> from_proto(const v1::Identity& identity) {
    model::GatewayIdentity out;
    const std::string context = "identity of gateway \"" + identity.gateway_name() + "\"";
    if (auto status = check_name("gateway_name", identity.gateway_name(), false); !status) {
        return in_context("identity", std::move(status.error()));
    }
    out.gateway_name = identity.gateway_name();
    const auto mode = from_proto(identity.mode());
    if (!mode) {
        return in_context(context, mode.error());
    }
    out.mode = *mode;
    if (auto status = check_name("node_name", identity.node_name(), out.mode == model::GatewayMode::External);
        !status) {
        return in_context(context, std::move(status.error()));
    }
    out.node_name = identity.node_name();
    out.labels.insert(identity.labels().begin(), identity.labels().end());
    for (int i = 0; i < identity.addresses_size(); ++i) {
        const auto& in = identity.addresses(i);
        auto address = IpAddr::parse(in.address());
        if (!address) {
            return in_context(context + ": " + indexed("addresses", i), std::move(address.error()));
        }
        if (in.prefix_length() > address->bits()) {
            return in_context(context + ": " + indexed("addresses", i),
                              {Errc::InvalidArgument, "prefix length " + std::to_string(in.prefix_length()) +
                                                          " is not in 0-" + std::to_string(address->bits())});
        }
        out.addresses.push_back(
            {in.port_name(), *address, static_cast<uint8_t>(in.prefix_length()), in.configured()});
    }
    std::ranges::sort(out.addresses);
    if (static_cast<size_t>(identity.routed_prefixes_size()) > model::kRoutedPrefixesMax) {
        return in_context(context, {Errc::InvalidArgument, "routed_prefixes: more than " +
                                                               std::to_string(model::kRoutedPrefixesMax)});
    }
    for (int i = 0; i < identity.routed_prefixes_size(); ++i) {
        auto prefix = Prefix::parse(identity.routed_prefixes(i));
        if (!prefix) {
            return in_context(context + ": " + indexed("routed_prefixes", i), std::move(prefix.error()));
        }
        out.routed_prefixes.push_back(*prefix);
    }
    sort_unique(out.routed_prefixes);
    return out;
}

Result<L4Port> l4_port(uint64_t number) {
    if (number < 1 || number > 65535) {
        return invalid("port " + std::to_string(number) + " is not in 1-65535");
    }
    return static_cast<L4Port>(number);
}

Result<std::optional<IpAddr>> optional_address(const std::string& text, const char* field) {
    if (text.empty()) {
        return std::nullopt;
    }
    const auto address = IpAddr::parse(text);
    if (!address) {
        return in_context(field, address.error());
    }
    return *address;
}

std::string socket_text(const IpAddr& address, L4Port port) {
    const std::string text = address.to_string();
    return (address.is_v4() ? text : "[" + text + "]") + ":" + std::to_string(port);
}

std::string text_of(const v1::ServiceKey& key) {
    const auto protocol = from_proto(key.protocol());
    return key.namespace_() + "/" + key.name() + (key.port_name().empty() ? "" : ":" + key.port_name()) +
           "/" + (protocol ? to_string(*protocol) : "?");
}

}  // namespace penstock::rpc
