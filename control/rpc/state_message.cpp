#include "control/rpc/state_message.hpp"

#include <set>
#include <utility>

#include "control/rpc/convert.hpp"

namespace penstock::rpc {
namespace {

std::unexpected<Error> invalid(std::string what) {
    return fail(Errc::InvalidArgument, std::move(what));
}

Result<StateVersion> version_from(const v1::StateVersion& message, const char* field) {
    if (message.source().empty() || message.source().size() > kNameBytesMax) {
        return invalid(std::string(field) + ": source is not a name of 1 to " + std::to_string(kNameBytesMax) + " bytes");
    }
    if (message.version() == 0) {
        return invalid(std::string(field) + ": version 0 names no state");
    }
    return StateVersion{message.source(), message.version()};
}

// Fills the update's services and what is refused of them.
void read_services(const google::protobuf::RepeatedPtrField<v1::Service>& messages, CheckedMessage& out) {
    std::set<model::ServiceKey> seen;
    for (const auto& message : messages) {
        auto service = from_proto(message);
        if (service && !seen.insert(service->key).second) {
            service = invalid("service " + service->key.to_string() + ": is in this message twice; the first one counts");
        }
        if (service) {
            out.update.services.push_back(std::move(*service));
            continue;
        }
        v1::ServiceResult& result = out.refused.emplace_back();
        *result.mutable_key() = message.key();
        result.set_outcome(v1::ServiceResult::OUTCOME_REFUSED);
        result.set_why(service.error().what);
        if (auto key = from_proto(message.key()); key && seen.insert(*key).second) {
            out.update.invalid.emplace_back(std::move(*key), service.error().what);
        }
    }
}

Status read_node_ports(const v1::NodePortAddresses& message, StateUpdate& update) {
    auto addresses = from_proto(message);
    if (!addresses) {
        return std::unexpected(std::move(addresses.error()));
    }
    update.node_port_addresses = std::move(*addresses);
    return {};
}

Result<CheckedMessage> full_from(const v1::FullState& message) {
    auto version = version_from(message.version(), "full.version");
    if (!version) {
        return std::unexpected(std::move(version.error()));
    }
    CheckedMessage out;
    out.update.version = std::move(*version);
    read_services(message.services(), out);
    if (auto status = read_node_ports(message.node_port_addresses(), out.update); !status) {
        return std::unexpected(std::move(status.error()));
    }
    return out;
}

Result<CheckedMessage> delta_from(const v1::StateDelta& message) {
    auto base = version_from(message.base(), "delta.base");
    auto version = version_from(message.version(), "delta.version");
    if (!base || !version) {
        return std::unexpected(std::move(!base ? base.error() : version.error()));
    }
    if (version->source != base->source || version->number <= base->number) {
        return invalid("delta.version: " + std::to_string(version->number) + " of " + version->source + " does not follow " +
                       std::to_string(base->number) + " of " + base->source);
    }
    CheckedMessage out;
    out.update.version = std::move(*version);
    out.update.base = std::move(*base);
    read_services(message.upsert(), out);
    std::set<model::ServiceKey> given;
    for (const auto& service : out.update.services) {
        given.insert(service.key);
    }
    for (const auto& in : message.remove()) {
        auto key = from_proto(in);
        if (!key) {
            continue;  // what cannot be a key names nothing that is there
        }
        if (given.contains(*key)) {
            return invalid("delta: service " + key->to_string() + " is both given and removed");
        }
        out.update.removed.push_back(std::move(*key));
    }
    if (message.has_node_port_addresses()) {
        if (auto status = read_node_ports(message.node_port_addresses(), out.update); !status) {
            return std::unexpected(std::move(status.error()));
        }
    }
    return out;
}

}  // namespace

Result<CheckedMessage> from_proto(const v1::StateMessage& message) {
    switch (message.message_case()) {
        case v1::StateMessage::kFull:
            return full_from(message.full());
        case v1::StateMessage::kDelta:
            return delta_from(message.delta());
        case v1::StateMessage::MESSAGE_NOT_SET:
            break;
    }
    return invalid("the message holds neither a full state nor a delta");
}

v1::StateVersion to_proto(const StateVersion& version) {
    v1::StateVersion message;
    message.set_source(version.source);
    message.set_version(version.number);
    return message;
}

v1::ServiceResult to_proto(const ServiceOutcome& outcome) {
    v1::ServiceResult message;
    *message.mutable_key() = to_proto(outcome.key);
    switch (outcome.kind) {
        case ServiceOutcome::Kind::Applied:
            message.set_outcome(v1::ServiceResult::OUTCOME_APPLIED);
            break;
        case ServiceOutcome::Kind::Refused:
            message.set_outcome(v1::ServiceResult::OUTCOME_REFUSED);
            break;
        case ServiceOutcome::Kind::Removed:
            message.set_outcome(v1::ServiceResult::OUTCOME_REMOVED);
            break;
    }
    message.set_why(outcome.why);
    return message;
}

}  // namespace penstock::rpc
