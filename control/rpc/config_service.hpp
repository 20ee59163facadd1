// SPDX-License-Identifier: Apache-2.0
// penstock.v1.GatewayConfig: one of the open state streams leads, and the others wait (config.proto). The
// leader's messages are checked here and passed to the gateway; answers are sent in the order in which they
// return. Uses gRPC's callback API: a replaced stream must end with ABORTED while its next message is still
// awaited, which the synchronous API cannot do.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "control/rpc/auth.hpp"
#include "control/rpc/gateway.hpp"
#include "penstock/v1/config.grpc.pb.h"

namespace penstock::rpc {

// Limit of states received but not yet answered. At the limit, reading pauses and the transport's flow
// control stops the sender.
inline constexpr uint32_t kUnansweredMax = 16;

class ConfigService final : public v1::GatewayConfig::CallbackService {
 public:
    // Both must outlive the server that this service is registered with.
    ConfigService(StateTarget& target, const Authorizer& authorizer)
        : target_(target), authorizer_(authorizer) {}

    grpc::ServerBidiReactor<v1::StateMessage, v1::GatewayMessage>* SyncState(
        grpc::CallbackServerContext* context) override;

    // Sends the identity to the leader again. Any thread.
    void announce_identity();
    // Sends the gateway's observed notices to the leader again. Any thread.
    void announce_observed();

 private:
    class Stream;
    std::shared_ptr<Stream> current();
    void closed(const Stream* stream);
    // Call all three functions with mutex_ held. Waiting streams are sent the new leader's name.
    void make_leader(std::shared_ptr<Stream> stream);
    // Call when the leader has ended: makes a waiting stream the leader and returns it; the caller then calls
    // lead() on it without the lock. Null: no stream waits.
    [[nodiscard]] std::shared_ptr<Stream> elect();
    void report();

    StateTarget& target_;
    const Authorizer& authorizer_;
    std::mutex mutex_;
    std::shared_ptr<Stream> current_;               // the leader
    std::vector<std::shared_ptr<Stream>> waiting_;  // in the order of arrival
};

}  // namespace penstock::rpc
