// One message of the state stream, from the wire to what the reconciler takes. An invalid service port is refused alone (GEN-001); what
// breaks the protocol itself is an error that ends the stream. Pure.
#pragma once

#include <vector>

#include "control/rpc/state_update.hpp"
#include "dataplane/base/result.hpp"
#include "penstock/v1/config.pb.h"

namespace penstock::rpc {

struct CheckedMessage {
    StateUpdate update;                      // without received and done
    std::vector<v1::ServiceResult> refused;  // service ports that never reach the reconciler, with the reason
};

// InvalidArgument: no or broken versions, one service port both given and removed, broken NodePort rule.
[[nodiscard]] Result<CheckedMessage> from_proto(const v1::StateMessage& message);

[[nodiscard]] v1::StateVersion to_proto(const StateVersion& version);
[[nodiscard]] v1::ServiceResult to_proto(const ServiceOutcome& outcome);

}  // namespace penstock::rpc
