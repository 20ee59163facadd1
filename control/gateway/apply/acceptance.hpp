// SPDX-License-Identifier: Apache-2.0
// Acceptance of versions from the state stream: applies full states and deltas to the desired state of the
// gateway, and reports which service ports each of them changed. Compiles and publishes nothing.
//
//   StateUpdate --> a delta whose base is not the accepted version? --yes--> Outdated, no change
//                         | no
//                         v
//                   AcceptedState, and the keys to compile --> compiler
//
// Not thread-safe. The reconciler calls it with its state lock held, because other threads read AcceptedState
// (Reconciler::read()). No I/O except log lines about invalid service ports.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "control/gateway/compile/compile.hpp"
#include "control/gateway/compile/shared_map.hpp"
#include "control/model/desired.hpp"
#include "control/model/refusal.hpp"
#include "control/rpc/state_update.hpp"
#include "dataplane/base/result.hpp"

namespace penstock::gateway {

// The desired state: the last good state at start, then the state after each accepted message.
struct AcceptedState {
    rpc::StateVersion accepted;  // the newest accepted version; in force once published
    DesiredServices asked;       // the newest valid version of each service port
    SharedMap<model::ServiceKey, std::string> invalid;  // in a message, but not valid there
    model::Environment environment;
};

class Acceptance {
 public:
    using Refusals = SharedMap<model::ServiceKey, model::Refusal>;

    // `state` is what accept() changes; it must outlive this object.
    explicit Acceptance(AcceptedState& state) : state_(state) {}
    Acceptance(const Acceptance&) = delete;
    Acceptance& operator=(const Acceptance&) = delete;

    // Returns the keys to compile and to report: those that the message changed, those that a delta names,
    // and those that a full state names again after a refusal. Moves services and a delta's environment
    // out of `update`. Changes nothing if it returns an error. `refusals`: of the last compilation.
    Result<std::vector<model::ServiceKey>> accept(rpc::StateUpdate& update, const Refusals& refusals);

    // Service ports whose affinity was ended by a message since the last compilation, regardless of later
    // messages.
    [[nodiscard]] const std::vector<model::ServiceKey>& affinity_ended() const noexcept {
        return affinity_ended_;
    }
    void forget_affinity_ended() noexcept { affinity_ended_.clear(); }

 private:
    std::vector<model::ServiceKey> accept_full(rpc::StateUpdate& update, const Refusals& refusals);
    std::vector<model::ServiceKey> accept_delta(rpc::StateUpdate& update);
    bool put(model::Service service);
    void note_affinity_end(const model::ServiceKey& key, const model::Service* next);

    AcceptedState& state_;
    std::vector<model::ServiceKey> affinity_ended_;
};

// "version NUMBER of SOURCE", or "nothing" if there is none. For logs and errors.
[[nodiscard]] std::string version_text(const rpc::StateVersion& version);

}  // namespace penstock::gateway
