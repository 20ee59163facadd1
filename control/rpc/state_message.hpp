// SPDX-License-Identifier: Apache-2.0
// The state stream's messages, converted from the wire to the input of the reconciler. A state arrives in
// parts. Each part is checked on arrival, so that the checks overlap the transport of the next part and no
// message needs to be large. An invalid service port is refused alone (GEN-001); a violation of the protocol
// itself is an error that ends the stream. Pure.
//
//   part (more) --+
//   part (more) --+--> StateParts --> CheckedMessage: one update, one answer
//   part        --+
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <vector>

#include "control/rpc/state_update.hpp"
#include "dataplane/base/result.hpp"
#include "penstock/v1/config.pb.h"

namespace penstock::rpc {

// Size at which a sender begins the next part. A service port is never cut, so a part may be larger.
inline constexpr size_t kPartBytes = 1 << 20;
// The largest message that a gateway accepts. One service port with a million endpoints, the maximum of the
// API (GEN-009), has about 55 MB.
inline constexpr int kMessageBytesMax = 64 << 20;
// The largest state, over all parts: four sets of a million endpoints each. Only limits runaway input.
inline constexpr size_t kStateBytesMax = 256 << 20;

// Cost of each entry in addition to its bytes on the wire: an empty one takes two bytes there, and a hundred
// in memory.
inline constexpr size_t kEntryBytes = 128;

struct CheckedMessage {
    StateUpdate update;                      // without the fields received and done
    std::vector<v1::ServiceResult> refused;  // service ports not passed to the reconciler, with the reason
};

// Assembles states from their parts. One object per stream.
class StateParts {
 public:
    // Tests use smaller bounds.
    explicit StateParts(size_t state_bytes_max = kStateBytesMax) : state_bytes_max_(state_bytes_max) {}

    // Returns the whole state with its last part, otherwise nullopt. An error applies to the stream, which is
    // useless afterwards. InvalidArgument: missing or invalid versions, a part of another state than the
    // unfinished one, a service port that is both given and removed, an invalid environment. Exhausted: the
    // state is too large.
    [[nodiscard]] Result<std::optional<CheckedMessage>> add(const v1::StateMessage& part);

 private:
    Result<bool> add_full(const v1::FullState& part);
    Result<bool> add_delta(const v1::StateDelta& part);
    Status begin_or_continue(StateVersion version, std::optional<StateVersion> base);
    Status read_services(const google::protobuf::RepeatedPtrField<v1::Service>& messages);
    Status read_removed(const google::protobuf::RepeatedPtrField<v1::ServiceKey>& messages);
    Status read_environment(const v1::Environment& message);

    // Content of the unfinished state so far.
    struct Unfinished {
        CheckedMessage message;
        size_t bytes = 0;
        std::set<model::ServiceKey> named;  // valid or invalid
        std::set<model::ServiceKey> given;  // valid only
        std::set<model::ServiceKey> removed;
    };
    const size_t state_bytes_max_;
    std::optional<Unfinished> unfinished_;
};

[[nodiscard]] v1::StateVersion to_proto(const StateVersion& version);
[[nodiscard]] v1::ServiceResult to_proto(const ServiceOutcome& outcome);

}  // namespace penstock::rpc
