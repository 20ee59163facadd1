// Between penstock.v1 messages and the model. Towards the wire nothing can fail. From the wire every field is checked against the rule that
// its comment in the proto states, and the first breach is an InvalidArgument that names the thing and the rule:
// "service default/web:http/TCP: sets[0].endpoints[3]: port 70000 is not in 1-65535". A message that is returned as a value may be compiled
// without asking again. Pure; any thread. Both penstockd and the control planes use it, so it links neither workers nor drivers.
#pragma once

#include <string>
#include <string_view>

#include "control/model/desired.hpp"
#include "control/model/observed.hpp"
#include "dataplane/base/result.hpp"
#include "penstock/v1/config.pb.h"
#include "penstock/v1/types.pb.h"

namespace penstock::rpc {

// Sets of one service port: for each of two families the external policy's, which is always there, and at most three that its frontends
// use, by policy and by where the client is, with endpoints of the one family or of the other. Only stops runaway input.
inline constexpr int kBackendSetsMax = 8;
// Kubernetes names are at most 253 bytes (RFC 1123 subdomain); nothing that the gateway repeats in logs and metrics may be longer.
inline constexpr size_t kNameBytesMax = 253;
// Of a probe: as long as an annotation may have it (ANN-10). Longer ones, which have no use, would be sent to every endpoint again and
// again.
inline constexpr size_t kProbePathBytesMax = 1024;

[[nodiscard]] v1::Protocol to_proto(Protocol protocol);
[[nodiscard]] v1::Scheduler to_proto(lb::SchedulerKind scheduler);
[[nodiscard]] v1::SourceMode to_proto(lb::SourceMode mode);
[[nodiscard]] v1::EmptyAction to_proto(lb::EmptyAction action);
[[nodiscard]] v1::FrontendClass to_proto(lb::FrontendClass cls);
[[nodiscard]] v1::Identity::Mode to_proto(model::GatewayMode mode);
[[nodiscard]] v1::SocketAddress to_proto(const IpAddr& address, L4Port port);
[[nodiscard]] v1::ServiceKey to_proto(const model::ServiceKey& key);
[[nodiscard]] v1::Notice to_proto(const model::Notice& notice);
[[nodiscard]] v1::ObservedNotice to_proto(const model::ObservedNotice& observed);
[[nodiscard]] v1::Endpoint to_proto(const model::Endpoint& endpoint);
[[nodiscard]] v1::Service to_proto(const model::Service& service);
[[nodiscard]] v1::Environment to_proto(const model::Environment& environment);
[[nodiscard]] v1::NodePortAddresses to_proto(const model::NodePortAddresses& addresses);
// The identity alone; what is applied and the software's version are the caller's to add.
[[nodiscard]] v1::Identity to_proto(const model::GatewayIdentity& identity);

// A value that this version does not know is an error, never a guess: a newer control plane must learn that it asked for too much.
[[nodiscard]] Result<Protocol> from_proto(v1::Protocol protocol);
[[nodiscard]] Result<lb::SchedulerKind> from_proto(v1::Scheduler scheduler);  // unspecified: rr
[[nodiscard]] Result<lb::SourceMode> from_proto(v1::SourceMode mode);         // unspecified: translate
[[nodiscard]] Result<lb::EmptyAction> from_proto(v1::EmptyAction action);     // unspecified: reject
[[nodiscard]] Result<lb::FrontendClass> from_proto(v1::FrontendClass cls);
[[nodiscard]] Result<model::GatewayMode> from_proto(v1::Identity::Mode mode);
[[nodiscard]] Result<model::ServiceKey> from_proto(const v1::ServiceKey& key);
[[nodiscard]] Result<model::Notice> from_proto(const v1::Notice& notice);
[[nodiscard]] Result<model::ObservedNotice> from_proto(const v1::ObservedNotice& observed);
// Endpoints come out sorted whatever their order was, since their order is part of the state; frontends and notices keep theirs.
[[nodiscard]] Result<model::Service> from_proto(const v1::Service& service);
[[nodiscard]] Result<model::Environment> from_proto(const v1::Environment& environment);
[[nodiscard]] Result<model::NodePortAddresses> from_proto(const v1::NodePortAddresses& addresses);
[[nodiscard]] Result<model::GatewayIdentity> from_proto(const v1::Identity& identity);

// 1 to 65535; the error says what it was.
[[nodiscard]] Result<L4Port> l4_port(uint64_t number);
// "" is none; the error begins with the field's name.
[[nodiscard]] Result<std::optional<IpAddr>> optional_address(const std::string& text, const char* field);
// "10.0.0.1:80", "[2001:db8::1]:80".
[[nodiscard]] std::string socket_text(const IpAddr& address, L4Port port);
// The key as far as a message that may be broken tells it, for error texts.
[[nodiscard]] std::string text_of(const v1::ServiceKey& key);

}  // namespace penstock::rpc
