// SPDX-License-Identifier: Apache-2.0
#include "control/sync/stream/outgoing_state.hpp"

#include <utility>

#include "control/rpc/convert.hpp"

namespace penstock::sync {

v1::StateMessage OutgoingState::next_part() {
    v1::StateMessage part = empty_part();
    if (auto addresses = std::exchange(content_.environment, std::nullopt)) {
        (name_.base ? *part.mutable_delta()->mutable_environment()
                    : *part.mutable_full()->mutable_environment()) = rpc::to_proto(*addresses);
    }
    const model::ServiceKey* previous = nullptr;
    const model::ServiceKey* next = next_key();
    for (size_t bytes = 0; next != nullptr; next = next_key()) {
        const bool same_service = previous != nullptr && next->namespace_name == previous->namespace_name &&
                                  next->name == previous->name;
        if (bytes >= kPartBytesMax || (bytes >= kPartBytes && !same_service)) {
            break;
        }
        previous = next;
        bytes += add_next(part);
    }
    done_ = next == nullptr;
    name_.base ? part.mutable_delta()->set_more(!done_) : part.mutable_full()->set_more(!done_);
    return part;
}

v1::StateMessage OutgoingState::empty_part() const {
    v1::StateMessage part;
    v1::StateVersion& version =
        name_.base ? *part.mutable_delta()->mutable_version() : *part.mutable_full()->mutable_version();
    version.set_source(name_.source);
    version.set_version(name_.version);
    if (name_.base) {
        part.mutable_delta()->mutable_base()->set_source(name_.source);
        part.mutable_delta()->mutable_base()->set_version(*name_.base);
    }
    return part;
}

// Walks both lists in step, so that additions and removals of one Kubernetes Service stay together.
const model::ServiceKey* OutgoingState::next_key() const {
    const model::ServiceKey* given =
        services_sent_ < content_.services.size() ? &content_.services[services_sent_]->key : nullptr;
    const model::ServiceKey* removed =
        removed_sent_ < content_.removed.size() ? &content_.removed[removed_sent_] : nullptr;
    if (given == nullptr || removed == nullptr) {
        return given != nullptr ? given : removed;
    }
    return *given < *removed ? given : removed;
}

size_t OutgoingState::add_next(v1::StateMessage& part) {
    if (services_sent_ == content_.services.size() || next_key() != &content_.services[services_sent_]->key) {
        v1::ServiceKey& key = *part.mutable_delta()->add_remove();
        key = rpc::to_proto(content_.removed[removed_sent_++]);
        return key.ByteSizeLong();
    }
    v1::Service& service =
        name_.base ? *part.mutable_delta()->add_upsert() : *part.mutable_full()->add_services();
    service = rpc::to_proto(*content_.services[services_sent_++]);
    return service.ByteSizeLong();
}

}  // namespace penstock::sync
