// The state stream's messages, from the wire to what the reconciler takes. A state arrives in parts, each checked as it comes, so that the
// checking of one overlaps the transport of the next and no message need be large. An invalid service port is refused alone (GEN-001); what
// breaks the protocol itself is an error that ends the stream. Pure.
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

// Where a sender cuts. A service port is never cut, so a part may be larger.
inline constexpr size_t kPartBytes = 1 << 20;
// The largest message a gateway takes: one service port with a million endpoints, the most that the API allows (GEN-009), has some 55 MB.
inline constexpr int kMessageBytesMax = 64 << 20;
// The largest state, over all its parts: four sets each of a million endpoints. Only stops runaway input.
inline constexpr size_t kStateBytesMax = 256 << 20;

// What each entry counts for beside its bytes on the wire: an empty one has two there, and a hundred in memory.
inline constexpr size_t kEntryBytes = 128;

struct CheckedMessage {
    StateUpdate update;                      // without received and done
    std::vector<v1::ServiceResult> refused;  // service ports that never reach the reconciler, with the reason
};

// Collects the parts of one state after the other. One a stream.
class StateParts {
 public:
    // Smaller bounds are for tests.
    explicit StateParts(size_t state_bytes_max = kStateBytesMax) : state_bytes_max_(state_bytes_max) {}

    // The whole state with its last part, else nothing yet. An error is about the stream: it is of no use afterwards.
    // InvalidArgument: no or broken versions, a part of another state than the unfinished one, one service port both given and removed,
    // broken environment. Exhausted: the state is too large.
    [[nodiscard]] Result<std::optional<CheckedMessage>> add(const v1::StateMessage& part);

 private:
    Result<bool> add_full(const v1::FullState& part);
    Result<bool> add_delta(const v1::StateDelta& part);
    Status begin_or_continue(StateVersion version, std::optional<StateVersion> base);
    Status read_services(const google::protobuf::RepeatedPtrField<v1::Service>& messages);
    Status read_removed(const google::protobuf::RepeatedPtrField<v1::ServiceKey>& messages);
    Status read_environment(const v1::Environment& message);

    // What the unfinished state has said so far.
    struct Unfinished {
        CheckedMessage message;
        size_t bytes = 0;
        std::set<model::ServiceKey> named;  // valid or not
        std::set<model::ServiceKey> given;  // valid
        std::set<model::ServiceKey> removed;
    };
    const size_t state_bytes_max_;
    std::optional<Unfinished> unfinished_;
};

[[nodiscard]] v1::StateVersion to_proto(const StateVersion& version);
[[nodiscard]] v1::ServiceResult to_proto(const ServiceOutcome& outcome);

}  // namespace penstock::rpc
