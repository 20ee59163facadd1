// SPDX-License-Identifier: Apache-2.0
#include "control/rpc/convert.hpp"

#include <algorithm>
#include <utility>

#include "control/rpc/convert_rules.hpp"
#include "control/rpc/enum_table.hpp"

namespace penstock::rpc {
namespace {

// clang-format off
constexpr auto kProtocols = enum_table<Protocol, v1::Protocol>("protocol", {
    {Protocol::Tcp, v1::PROTOCOL_TCP},
    {Protocol::Udp, v1::PROTOCOL_UDP},
    {Protocol::Sctp, v1::PROTOCOL_SCTP},
});
static_assert(kProtocols.covers(v1::Protocol_MAX));

constexpr auto kSchedulers = enum_table<lb::SchedulerKind, v1::Scheduler>("scheduler", {
    {lb::SchedulerKind::RoundRobin, v1::SCHEDULER_RR},
    {lb::SchedulerKind::Random, v1::SCHEDULER_RANDOM},
    {lb::SchedulerKind::Maglev, v1::SCHEDULER_MH},
    {lb::SchedulerKind::WeightedRoundRobin, v1::SCHEDULER_WRR},
    {lb::SchedulerKind::LeastConnection, v1::SCHEDULER_LC},
    {lb::SchedulerKind::WeightedLeastConnection, v1::SCHEDULER_WLC},
    {lb::SchedulerKind::SourceHash, v1::SCHEDULER_SH},
    {lb::SchedulerKind::DestinationHash, v1::SCHEDULER_DH},
    {lb::SchedulerKind::ShortestExpectedDelay, v1::SCHEDULER_SED},
    {lb::SchedulerKind::NeverQueue, v1::SCHEDULER_NQ},
    {lb::SchedulerKind::TwoChoices, v1::SCHEDULER_P2C},
    {lb::SchedulerKind::RoundRobin, v1::SCHEDULER_UNSPECIFIED},
});
static_assert(kSchedulers.covers(v1::Scheduler_MAX) && kSchedulers.sends_all(lb::kSchedulerKinds.size()));

constexpr auto kSourceModes = enum_table<lb::SourceMode, v1::SourceMode>("source mode", {
    {lb::SourceMode::Translate, v1::SOURCE_MODE_TRANSLATE},
    {lb::SourceMode::Keep, v1::SOURCE_MODE_KEEP},
    {lb::SourceMode::Translate, v1::SOURCE_MODE_UNSPECIFIED},
});
static_assert(kSourceModes.covers(v1::SourceMode_MAX));

constexpr auto kEmptyActions = enum_table<lb::EmptyAction, v1::EmptyAction>("empty action", {
    {lb::EmptyAction::Reject, v1::EMPTY_ACTION_REJECT},
    {lb::EmptyAction::Drop, v1::EMPTY_ACTION_DROP},
    {lb::EmptyAction::DropNoLocal, v1::EMPTY_ACTION_DROP_NO_LOCAL},
    {lb::EmptyAction::Reject, v1::EMPTY_ACTION_UNSPECIFIED},
});
static_assert(kEmptyActions.covers(v1::EmptyAction_MAX));

constexpr auto kFrontendClasses = enum_table<lb::FrontendClass, v1::FrontendClass>("frontend class", {
    {lb::FrontendClass::ClusterIp, v1::FRONTEND_CLASS_CLUSTER_IP},
    {lb::FrontendClass::LoadBalancerIp, v1::FRONTEND_CLASS_LOAD_BALANCER_IP},
    {lb::FrontendClass::ExternalIp, v1::FRONTEND_CLASS_EXTERNAL_IP},
    {lb::FrontendClass::NodePort, v1::FRONTEND_CLASS_NODE_PORT},
});
static_assert(kFrontendClasses.covers(v1::FrontendClass_MAX));

constexpr auto kGatewayModes = enum_table<model::GatewayMode, v1::Identity::Mode>("mode", {
    {model::GatewayMode::Node, v1::Identity::MODE_NODE},
    {model::GatewayMode::External, v1::Identity::MODE_EXTERNAL},
});
static_assert(kGatewayModes.covers(v1::Identity::Mode_MAX));

// UNSPECIFIED is the same as WARNING.
constexpr auto kNoticeLevels = enum_table<model::Notice::Level, v1::Notice::Level>("notice level", {
    {model::Notice::Level::Normal, v1::Notice::LEVEL_NORMAL},
    {model::Notice::Level::Warning, v1::Notice::LEVEL_WARNING},
    {model::Notice::Level::Warning, v1::Notice::LEVEL_UNSPECIFIED},
});
static_assert(kNoticeLevels.covers(v1::Notice::Level_MAX));
// clang-format on

}  // namespace

v1::Protocol to_proto(Protocol protocol) {
    return kProtocols.to_wire(protocol);
}
Result<Protocol> from_proto(v1::Protocol protocol) {
    return kProtocols.from_wire(protocol);
}

v1::Scheduler to_proto(lb::SchedulerKind scheduler) {
    return kSchedulers.to_wire(scheduler);
}
Result<lb::SchedulerKind> from_proto(v1::Scheduler scheduler) {
    return kSchedulers.from_wire(scheduler);
}

v1::SourceMode to_proto(lb::SourceMode mode) {
    return kSourceModes.to_wire(mode);
}
Result<lb::SourceMode> from_proto(v1::SourceMode mode) {
    return kSourceModes.from_wire(mode);
}

v1::EmptyAction to_proto(lb::EmptyAction action) {
    return kEmptyActions.to_wire(action);
}
Result<lb::EmptyAction> from_proto(v1::EmptyAction action) {
    return kEmptyActions.from_wire(action);
}

v1::FrontendClass to_proto(lb::FrontendClass cls) {
    return kFrontendClasses.to_wire(cls);
}
Result<lb::FrontendClass> from_proto(v1::FrontendClass cls) {
    return kFrontendClasses.from_wire(cls);
}

v1::Identity::Mode to_proto(model::GatewayMode mode) {
    return kGatewayModes.to_wire(mode);
}
Result<model::GatewayMode> from_proto(v1::Identity::Mode mode) {
    return kGatewayModes.from_wire(mode);
}

v1::SocketAddress to_proto(const SocketAddress& socket) {
    v1::SocketAddress message;
    message.set_address(socket.address.to_string());
    message.set_port(socket.port);
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
    message.set_level(kNoticeLevels.to_wire(notice.level));
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

Result<model::ServiceKey> from_proto(const v1::ServiceKey& key) {
    PENSTOCK_TRY(const auto protocol, from_proto(key.protocol()));
    for (const auto& [field, name, may_be_empty] :
         {std::tuple("namespace", std::string_view(key.namespace_()), false),
          std::tuple("name", std::string_view(key.name()), false),
          std::tuple("port_name", std::string_view(key.port_name()), true)}) {
        PENSTOCK_TRY_STATUS(check_name(field, name, may_be_empty));
    }
    return model::ServiceKey{key.namespace_(), key.name(), key.port_name(), protocol};
}

Result<model::Notice> from_proto(const v1::Notice& notice) {
    PENSTOCK_TRY(const auto level, kNoticeLevels.from_wire(notice.level()));
    return model::Notice{level, notice.reason(), notice.message()};
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
        PENSTOCK_TRY_IN("node_ports." + indexed("within", i), auto prefix,
                        Prefix::parse(addresses.within(i)));
        out.within.push_back(prefix);
    }
    for (int i = 0; i < addresses.node_addresses_size(); ++i) {
        PENSTOCK_TRY_IN("node_ports." + indexed("node_addresses", i), auto address,
                        IpAddr::parse(addresses.node_addresses(i)));
        out.node_addresses.push_back(address);
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
        PENSTOCK_TRY_IN("environment." + indexed("pod_cidrs", i), auto cidr,
                        Prefix::parse(environment.pod_cidrs(i)));
        out.pod_cidrs.push_back(cidr);
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
    PENSTOCK_TRY_STATUS_IN("identity", check_name("gateway_name", identity.gateway_name(), false));
    out.gateway_name = identity.gateway_name();
    PENSTOCK_TRY_IN(context, const auto mode, from_proto(identity.mode()));
    out.mode = mode;
    PENSTOCK_TRY_STATUS_IN(
        context, check_name("node_name", identity.node_name(), out.mode == model::GatewayMode::External));
    out.node_name = identity.node_name();
    out.labels.insert(identity.labels().begin(), identity.labels().end());
    for (int i = 0; i < identity.addresses_size(); ++i) {
        const auto& in = identity.addresses(i);
        PENSTOCK_TRY_IN(context + ": " + indexed("addresses", i), auto address, IpAddr::parse(in.address()));
        if (in.prefix_length() > address.bits()) {
            return in_context(context + ": " + indexed("addresses", i),
                              {Errc::InvalidArgument, "prefix length " + std::to_string(in.prefix_length()) +
                                                          " is not in 0-" + std::to_string(address.bits())});
        }
        out.addresses.push_back(
            {in.port_name(), address, static_cast<uint8_t>(in.prefix_length()), in.configured()});
    }
    std::ranges::sort(out.addresses);
    if (static_cast<size_t>(identity.routed_prefixes_size()) > model::kRoutedPrefixesMax) {
        return in_context(context, {Errc::InvalidArgument, "routed_prefixes: more than " +
                                                               std::to_string(model::kRoutedPrefixesMax)});
    }
    for (int i = 0; i < identity.routed_prefixes_size(); ++i) {
        PENSTOCK_TRY_IN(context + ": " + indexed("routed_prefixes", i), auto prefix,
                        Prefix::parse(identity.routed_prefixes(i)));
        out.routed_prefixes.push_back(prefix);
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
    PENSTOCK_TRY_IN(field, const auto address, IpAddr::parse(text));
    return address;
}

std::string text_of(const v1::ServiceKey& key) {
    const auto protocol = from_proto(key.protocol());
    return key.namespace_() + "/" + key.name() + (key.port_name().empty() ? "" : ":" + key.port_name()) +
           "/" + (protocol ? to_string(*protocol) : "?");
}

}  // namespace penstock::rpc
