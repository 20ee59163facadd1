// SPDX-License-Identifier: Apache-2.0
// The gRPC server of a gateway: its four services, reflection and the standard health service, on Unix
// sockets (mode 0660) and on TCP with mutual TLS only.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "control/rpc/gateway.hpp"
#include "control/rpc/listener.hpp"
#include "control/tls/watch.hpp"
#include "dataplane/base/result.hpp"

namespace penstock::rpc {

struct Backends {
    StateTarget& state;
    const StatusSource& status;
    DebugTarget& debug;
    PeerTarget* peers = nullptr;  // null: there is no plan of shares
};

class Server {
 public:
    // `backends` must outlive the server. Errors name the address or the file.
    static Result<std::unique_ptr<Server>> start(const ServerOptions& options, const Backends& backends);
    ~Server();  // calls stop()
    Server(const Server&) = delete;
    Server& operator=(const Server&) = delete;

    // Sends the gateway's identity to the connected control plane again. Any thread.
    void announce_identity();
    // Sends the gateway's observed notices to the connected control plane again. Any thread.
    void announce_observed();
    // Sets the status that the standard health service (grpc.health.v1) reports; SERVING at start. Any
    // thread.
    void set_serving(bool is_serving);
    // Ends the streams with copies of connections, and refuses new ones. Any thread.
    void stop_copies();
    // Ends all calls. Calls that have not ended after half a second are cut. Removes the sockets. Idempotent.
    void stop();
    // TLS files and connections of the TCP addresses. Null if there are none; tcp() is also null after
    // stop().
    [[nodiscard]] tls::Watch* tls() const;
    [[nodiscard]] const TcpAcceptor* tcp() const;

 private:
    struct Impl;
    explicit Server(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

}  // namespace penstock::rpc
