// The gRPC server of a gateway: its three services, reflection and the standard health service, on Unix sockets (mode 0660) and on TCP by
// mutual TLS only.
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
};

class Server {
 public:
    // `backends` outlive it. Errors name the address or the file.
    static Result<std::unique_ptr<Server>> start(const ServerOptions& options, const Backends& backends);
    ~Server();  // stop()
    Server(const Server&) = delete;
    Server& operator=(const Server&) = delete;

    // Sends the gateway's identity again, to the control plane that is connected. Any thread.
    void announce_identity();
    // The same for what the gateway has observed.
    void announce_observed();
    // What the standard health service (grpc.health.v1) reports; SERVING at start. Any thread.
    void set_serving(bool is_serving);
    // Ends all calls, waits for them at most half a second before they are cut, removes the sockets. Idempotent.
    void stop();
    // Of the TCP addresses; null where there are none, and tcp() after stop().
    [[nodiscard]] tls::Watch* tls() const;
    [[nodiscard]] const TcpAcceptor* tcp() const;

 private:
    struct Impl;
    explicit Server(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

}  // namespace penstock::rpc
