// SPDX-License-Identifier: Apache-2.0
// Model of a gateway's handling of the state stream, in the simplest correct form: parts are collected,
// applied as one and answered once. Refuses whole streams as penstockd does if a delta has another base
// version.
#pragma once

#include <google/protobuf/util/message_differencer.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "control/rpc/convert.hpp"
#include "dataplane/base/result.hpp"
#include "penstock/v1/config.pb.h"

namespace penstock::test {

class ModelGateway {
 public:
    // nullopt while more parts are expected.
    Result<std::optional<v1::Applied>> take(const v1::StateMessage& part) {
        if (part.has_full()) {
            gather(part.full(), part.full().services(), {});
        } else {
            const v1::StateDelta& delta = part.delta();
            if (delta.base().source() != applied.source() || delta.base().version() != applied.version()) {
                return fail(Errc::Outdated, "the delta's base is not what is applied");
            }
            gather(delta, delta.upsert(), delta.remove());
        }
        ++parts_of_state;
        if (part.has_full() ? part.full().more() : part.delta().more()) {
            return std::nullopt;
        }
        return apply(part.has_full() ? part.full().version() : part.delta().version(), part.has_full());
    }
    // Parts of an unfinished state are discarded when the stream ends.
    void drop_parts() {
        given.clear();
        removed.clear();
        addresses.reset();
        parts_of_state = 0;
    }
    v1::Identity identity() const {
        v1::Identity message;
        message.set_gateway_name("edge-1");
        message.set_mode(node_name.empty() ? v1::Identity::MODE_EXTERNAL : v1::Identity::MODE_NODE);
        message.set_node_name(node_name);
        message.set_applied_source(applied.source());
        message.set_applied_version(applied.version());
        return message;
    }
    // Refusal of a service port with its reason; an empty `why` means accepted.
    struct Refusal {
        std::string reason;
        std::string why;
    };
    std::function<Refusal(const v1::ServiceKey&)> refuse = [](const v1::ServiceKey&) { return Refusal(); };

    std::string node_name;  // "": external mode
    v1::StateVersion applied;
    std::map<std::string, v1::Service> services;
    v1::Environment environment;
    size_t parts_of_last_state = 0;

 private:
    template <typename Message, typename Services,
              typename Keys = google::protobuf::RepeatedPtrField<v1::ServiceKey>>
    void gather(const Message& message, const Services& with, const Keys& without) {
        for (const v1::Service& service : with) {
            given[rpc::text_of(service.key())] = service;
        }
        for (const v1::ServiceKey& key : without) {
            removed[rpc::text_of(key)] = key;
        }
        if (message.has_environment()) {
            addresses = message.environment();
        }
    }
    v1::Applied apply(const v1::StateVersion& version, bool is_full) {
        v1::Applied answer;
        const auto add = [&answer](const v1::ServiceKey& key, v1::ServiceResult::Outcome outcome) {
            v1::ServiceResult& result = *answer.add_services();
            *result.mutable_key() = key;
            result.set_outcome(outcome);
            return &result;
        };
        if (is_full) {
            for (const auto& [name, service] : services) {
                if (!given.contains(name)) {
                    removed[name] = service.key();
                }
            }
        }
        for (const auto& [name, key] : removed) {
            if (services.erase(name) > 0) {
                add(key, v1::ServiceResult::OUTCOME_REMOVED);
            }
        }
        for (const auto& [name, service] : given) {
            if (const Refusal refusal = refuse(service.key()); !refusal.why.empty()) {
                v1::ServiceResult* result = add(service.key(), v1::ServiceResult::OUTCOME_REFUSED);
                result->set_reason(refusal.reason);
                result->set_why(refusal.why);
                continue;
            }
            const auto held = services.find(name);
            if (held == services.end() ||
                !google::protobuf::util::MessageDifferencer::Equals(held->second, service)) {
                services[name] = service;
                add(service.key(), v1::ServiceResult::OUTCOME_APPLIED);
            }
        }
        if (is_full || addresses) {
            environment = addresses.value_or(v1::Environment());
        }
        applied = version;
        *answer.mutable_version() = version;
        parts_of_last_state = parts_of_state;
        drop_parts();
        return answer;
    }

    std::map<std::string, v1::Service> given;
    std::map<std::string, v1::ServiceKey> removed;
    std::optional<v1::Environment> addresses;
    size_t parts_of_state = 0;
};

}  // namespace penstock::test
