// SPDX-License-Identifier: Apache-2.0
// Conversions between penstock.v1 messages and the model. Conversions to the wire cannot fail. From the wire,
// every field is checked against the rule in its comment in the proto file. The first violation is returned
// as InvalidArgument with the object and the rule: "service default/web:http/TCP: sets[0].endpoints[3]: port
// 70000 is not in 1-65535". A returned value may be compiled without further checks. Pure; any thread. Used
// by penstockd and the control planes, so it links neither workers nor drivers.
#pragma once

#include <string>
#include <string_view>

#include "control/model/desired.hpp"
#include "control/model/observed.hpp"
#include "dataplane/base/result.hpp"
#include "penstock/v1/config.pb.h"
#include "penstock/v1/types.pb.h"

namespace penstock::rpc {

// Maximum of sets of one service port. For each of two families there is the set of the external policy, and
// at most three more for frontends: by policy, by the location of the client, and by the family of the
// endpoints. Only limits runaway input.
inline constexpr int kBackendSetsMax = 8;
// Kubernetes names have at most 253 bytes (RFC 1123 subdomain). The gateway repeats names in logs and
// metrics, so longer ones are refused.
inline constexpr size_t kNameBytesMax = 253;
// Limit of a probe's path: the same as that of the annotation (ANN-10). A longer path has no use and would be
// sent to every endpoint with every probe.
inline constexpr size_t kProbePathBytesMax = 1024;

[[nodiscard]] v1::Protocol to_proto(Protocol protocol);
[[nodiscard]] v1::Scheduler to_proto(lb::SchedulerKind scheduler);
[[nodiscard]] v1::SourceMode to_proto(lb::SourceMode mode);
[[nodiscard]] v1::EmptyAction to_proto(lb::EmptyAction action);
[[nodiscard]] v1::FrontendClass to_proto(lb::FrontendClass cls);
[[nodiscard]] v1::Identity::Mode to_proto(model::GatewayMode mode);
[[nodiscard]] v1::SocketAddress to_proto(const SocketAddress& socket);
[[nodiscard]] v1::ServiceKey to_proto(const model::ServiceKey& key);
[[nodiscard]] v1::Notice to_proto(const model::Notice& notice);
[[nodiscard]] v1::ObservedNotice to_proto(const model::ObservedNotice& observed);
[[nodiscard]] v1::Endpoint to_proto(const model::Endpoint& endpoint);
[[nodiscard]] v1::BackendSet to_proto(const model::BackendSet& set);
[[nodiscard]] v1::Service to_proto(const model::Service& service);
[[nodiscard]] v1::Environment to_proto(const model::Environment& environment);
[[nodiscard]] v1::NodePortAddresses to_proto(const model::NodePortAddresses& addresses);
// The identity only. The caller adds the applied version and the software version.
[[nodiscard]] v1::Identity to_proto(const model::GatewayIdentity& identity);

// A value unknown to this version is an error and not replaced by a default: a newer control plane must see
// that it uses an unsupported feature.
[[nodiscard]] Result<Protocol> from_proto(v1::Protocol protocol);
[[nodiscard]] Result<lb::SchedulerKind> from_proto(v1::Scheduler scheduler);  // unspecified: rr
[[nodiscard]] Result<lb::SourceMode> from_proto(v1::SourceMode mode);         // unspecified: translate
[[nodiscard]] Result<lb::EmptyAction> from_proto(v1::EmptyAction action);     // unspecified: reject
[[nodiscard]] Result<lb::FrontendClass> from_proto(v1::FrontendClass cls);
[[nodiscard]] Result<model::GatewayMode> from_proto(v1::Identity::Mode mode);
[[nodiscard]] Result<model::ServiceKey> from_proto(const v1::ServiceKey& key);
[[nodiscard]] Result<model::Notice> from_proto(const v1::Notice& notice);
[[nodiscard]] Result<model::ObservedNotice> from_proto(const v1::ObservedNotice& observed);
// Endpoints are returned sorted, because their order is part of the state. Frontends and notices keep their
// order.
[[nodiscard]] Result<model::BackendSet> from_proto(const v1::BackendSet& message);
[[nodiscard]] Result<model::Service> from_proto(const v1::Service& service);
[[nodiscard]] Result<model::Environment> from_proto(const v1::Environment& environment);
[[nodiscard]] Result<model::NodePortAddresses> from_proto(const v1::NodePortAddresses& addresses);
[[nodiscard]] Result<model::GatewayIdentity> from_proto(const v1::Identity& identity);

// 1 to 65535. The error contains the value.
[[nodiscard]] Result<L4Port> l4_port(uint64_t number);
// "" means none. The error begins with the field's name.
[[nodiscard]] Result<std::optional<IpAddr>> optional_address(const std::string& text, const char* field);
// The key for error texts, as far as a possibly malformed message contains it.
[[nodiscard]] std::string text_of(const v1::ServiceKey& key);

}  // namespace penstock::rpc
