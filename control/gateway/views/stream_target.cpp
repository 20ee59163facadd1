// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/views/stream_target.hpp"

#include "control/gateway/program/version.hpp"
#include "control/rpc/convert.hpp"

namespace penstock::gateway {

v1::Identity StreamTarget::identity() const {
    return reconciler_.read([](const ReconcilerState& state) {
        v1::Identity identity = rpc::to_proto(state.identity);
        identity.set_software_version(kVersion);
        identity.set_applied_version(state.applied.number);
        identity.set_applied_source(state.applied.source);
        return identity;
    });
}

v1::Observed StreamTarget::observed() const {
    v1::Observed message;
    for (const auto& observed : caretaker_.observed()) {
        *message.add_notices() = rpc::to_proto(observed);
    }
    return message;
}

}  // namespace penstock::gateway
