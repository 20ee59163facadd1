// penstock.v1.GatewayConfig: of the open state streams one leads and the others wait (config.proto). The leader's messages are checked here
// and handed to the gateway; answers go out in order as they come back. gRPC's callback API, because a stream that is replaced must end
// with ABORTED while its next message is still awaited, which the synchronous API cannot do.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "control/rpc/auth.hpp"
#include "control/rpc/gateway.hpp"
#include "penstock/v1/config.grpc.pb.h"

namespace penstock::rpc {

// States received but not yet answered. Beyond, reading pauses and the transport's flow control holds the sender back.
inline constexpr uint32_t kUnansweredMax = 16;

class ConfigService final : public v1::GatewayConfig::CallbackService {
 public:
    // Both outlive the server that this is registered with.
    ConfigService(StateTarget& target, const Authorizer& authorizer)
        : target_(target), authorizer_(authorizer) {}

    grpc::ServerBidiReactor<v1::StateMessage, v1::GatewayMessage>* SyncState(
        grpc::CallbackServerContext* context) override;

    // Sends the identity again, to the leader. Any thread.
    void announce_identity();
    // The same for what the gateway has observed.
    void announce_observed();

 private:
    class Stream;
    std::shared_ptr<Stream> current();
    void closed(const Stream* stream);
    // All three with mutex_ held. Waiting streams get the new leader's name.
    void make_leader(std::shared_ptr<Stream> stream);
    // The leader has ended: makes a waiting stream the leader, on which the caller calls lead() without the lock. Null: none waits.
    [[nodiscard]] std::shared_ptr<Stream> elect();
    void report();

    StateTarget& target_;
    const Authorizer& authorizer_;
    std::mutex mutex_;
    std::shared_ptr<Stream> current_;               // the leader
    std::vector<std::shared_ptr<Stream>> waiting_;  // in the order of their coming
};

}  // namespace penstock::rpc
