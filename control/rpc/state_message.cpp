// SPDX-License-Identifier: Apache-2.0
#include "control/rpc/state_message.hpp"

#include <set>
#include <utility>

#include "control/rpc/convert_rules.hpp"

namespace penstock::rpc {
namespace {

Result<StateVersion> version_from(const v1::StateVersion& message, const char* field) {
    if (message.source().empty() || message.source().size() > kNameBytesMax) {
        return invalid(std::string(field) + ": the length of source is not 1 to " +
                       std::to_string(kNameBytesMax) + " bytes");
    }
    if (message.version() == 0) {
        return invalid(std::string(field) + ": version must be 1 or more");
    }
    return StateVersion{message.source(), message.version()};
}

std::string text_of(const StateVersion& version) {
    return std::to_string(version.number) + " of " + version.source;
}

// The part's share of kStateBytesMax.
size_t cost_of(const v1::StateMessage& part) {
    const int entries = part.has_full() ? part.full().services_size()
                                        : part.delta().upsert_size() + part.delta().remove_size();
    return part.ByteSizeLong() + static_cast<size_t>(entries) * kEntryBytes;
}

}  // namespace

Result<std::optional<CheckedMessage>> StateParts::add(const v1::StateMessage& part) {
    const size_t bytes = (unfinished_ ? unfinished_->bytes : 0) + cost_of(part);
    if (bytes > state_bytes_max_) {
        return fail(Errc::Exhausted,
                    "the parts of the state exceed " + std::to_string(state_bytes_max_) + " bytes");
    }
    auto last = Result<bool>(invalid("the message contains neither a full state nor a delta"));
    switch (part.message_case()) {
        case v1::StateMessage::kFull:
            last = add_full(part.full());
            break;
        case v1::StateMessage::kDelta:
            last = add_delta(part.delta());
            break;
        case v1::StateMessage::MESSAGE_NOT_SET:
            break;
    }
    if (!last) {
        return std::unexpected(std::move(last.error()));
    }
    unfinished_->bytes = bytes;
    if (!*last) {
        return std::nullopt;
    }
    std::optional<CheckedMessage> whole(std::move(unfinished_->message));
    unfinished_.reset();
    return whole;
}

// True if the part is the last one.
Result<bool> StateParts::add_full(const v1::FullState& part) {
    PENSTOCK_TRY(auto version, version_from(part.version(), "full.version"));
    Status status = begin_or_continue(std::move(version), std::nullopt);
    if (status) {
        status = read_services(part.services());
    }
    if (status && part.has_environment()) {
        status = read_environment(part.environment());
    }
    return status ? Result<bool>(!part.more()) : std::unexpected(std::move(status.error()));
}

Result<bool> StateParts::add_delta(const v1::StateDelta& part) {
    PENSTOCK_TRY(auto base, version_from(part.base(), "delta.base"));
    PENSTOCK_TRY(auto version, version_from(part.version(), "delta.version"));
    if (version.source != base.source || version.number <= base.number) {
        return invalid("delta.version: " + text_of(version) + " does not follow " + text_of(base));
    }
    Status status = begin_or_continue(std::move(version), std::move(base));
    if (status) {
        status = read_services(part.upsert());
    }
    if (status) {
        status = read_removed(part.remove());
    }
    if (status && part.has_environment()) {
        status = read_environment(part.environment());
    }
    return status ? Result<bool>(!part.more()) : std::unexpected(std::move(status.error()));
}

Status StateParts::begin_or_continue(StateVersion version, std::optional<StateVersion> base) {
    if (!unfinished_) {
        unfinished_.emplace(Unfinished{});
        unfinished_->message.update.version = std::move(version);
        unfinished_->message.update.base = std::move(base);
        return {};
    }
    const StateUpdate& begun = unfinished_->message.update;
    if (version != begun.version || base != begun.base) {
        return invalid("a part of version " + text_of(version) + " comes before the last part of version " +
                       text_of(begun.version));
    }
    return {};
}

Status StateParts::read_services(const google::protobuf::RepeatedPtrField<v1::Service>& messages) {
    auto& [out, bytes, named, given, removed] = *unfinished_;
    out.update.services.reserve(out.update.services.size() + static_cast<size_t>(messages.size()));
    for (const auto& message : messages) {
        auto service = from_proto(message);
        if (service && !named.insert(service->key).second) {
            service = invalid("service " + service->key.to_string() +
                              ": is listed twice in this state; the first entry is used");
        }
        if (service) {
            if (removed.contains(service->key)) {
                return invalid("delta: service " + service->key.to_string() + " is both given and removed");
            }
            given.insert(service->key);
            out.update.services.push_back(std::move(*service));
            continue;
        }
        v1::ServiceResult& result = out.refused.emplace_back();
        *result.mutable_key() = message.key();
        result.set_outcome(v1::ServiceResult::OUTCOME_REFUSED);
        result.set_reason(std::string(model::kInvalidService));
        result.set_why(service.error().what);
        if (auto key = from_proto(message.key()); key && named.insert(*key).second) {
            out.update.invalid.emplace_back(std::move(*key), service.error().what);
        }
    }
    return {};
}

Status StateParts::read_removed(const google::protobuf::RepeatedPtrField<v1::ServiceKey>& messages) {
    for (const auto& message : messages) {
        auto key = from_proto(message);
        if (!key) {
            continue;  // an invalid key cannot name an existing service port
        }
        if (unfinished_->given.contains(*key)) {
            return invalid("delta: service " + key->to_string() + " is both given and removed");
        }
        if (unfinished_->removed.insert(*key).second) {
            unfinished_->message.update.removed.push_back(std::move(*key));
        }
    }
    return {};
}

Status StateParts::read_environment(const v1::Environment& message) {
    PENSTOCK_TRY(unfinished_->message.update.environment, from_proto(message));
    return {};
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
    message.set_reason(std::string(outcome.refusal.reason));
    message.set_why(outcome.refusal.why);
    return message;
}

}  // namespace penstock::rpc
