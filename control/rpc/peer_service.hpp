// SPDX-License-Identifier: Apache-2.0
// penstock.v1.GatewayPeers: copies of connections for another gateway of the plan of shares. Each stream
// occupies a thread of the server; a gateway has at most one.
#pragma once

#include <condition_variable>
#include <map>
#include <mutex>
#include <string>

#include "control/rpc/auth.hpp"
#include "control/rpc/gateway.hpp"
#include "penstock/v1/peers.grpc.pb.h"

namespace penstock::rpc {

class PeerService final : public v1::GatewayPeers::Service {
 public:
    // Both must outlive the server that this service is registered with. Null: there is no plan of shares.
    PeerService(PeerTarget* target, const Authorizer& authorizer)
        : target_(target), authorizer_(authorizer) {}

    grpc::Status FollowConnections(grpc::ServerContext* context, const v1::FollowConnectionsRequest* request,
                                   grpc::ServerWriter<v1::ConnectionCopies>* writer) override;

    // Ends all streams now, also those that wait for their readers, and refuses others. Any thread.
    void stop();

 private:
    class Stream;
    [[nodiscard]] Status examine(const Caller& caller, const v1::FollowConnectionsRequest& request) const;
    // Enters a stream in place of a former one of the same gateway, which it ends.
    Status enter(const std::string& gateway, Stream& stream);
    void leave(const std::string& gateway, const Stream& stream);

    PeerTarget* const target_;
    const Authorizer& authorizer_;
    std::mutex mutex_;
    std::condition_variable changed_;
    bool is_stopped_ = false;                 // guarded by mutex_, like the next two
    std::map<std::string, Stream*> streams_;  // by the name of the gateway
    int threads_ = 0;                         // those of streams that have been replaced included
};

}  // namespace penstock::rpc
