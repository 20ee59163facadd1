// SPDX-License-Identifier: Apache-2.0
// Listening sockets of a gRPC server: Unix sockets (mode 0660), and TCP with mutual TLS only, with reflection
// and the standard health service. penstockd and penstock-sync register their own services.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "control/rpc/tcp_acceptor.hpp"
#include "dataplane/base/result.hpp"

namespace grpc {
class Server;
class ServerCredentials;
class Service;
}  // namespace grpc

namespace penstock::rpc {

struct ServerOptions {
    std::vector<std::string> unix_paths;           // absolute; the caller holds a lock file beside each
    std::vector<std::string> tcp_addresses;        // HOST:PORT
    std::string tls_cert, tls_key, tls_client_ca;  // PEM files; required with tcp_addresses
    std::vector<std::string> tls_admin_names;      // for the services' Authorizer
    std::string socket_group;                      // "": the process's own
    ConnectionLimits connection_limits;            // of all TCP addresses together
};

// A gRPC server and what accepts its TCP connections.
struct Listening {
    std::unique_ptr<grpc::Server> server;
    std::unique_ptr<TcpAcceptor> tcp;  // null: no TCP address
};

// `services` must outlive the server. `tls` is used for TCP addresses; null if there are none. Errors name
// the address.
[[nodiscard]] Result<Listening> listen(const ServerOptions& options, const std::string& program,
                                       std::span<grpc::Service* const> services,
                                       const std::shared_ptr<grpc::ServerCredentials>& tls = nullptr);

// Ends all calls. Calls that have not ended after half a second are cut. Removes the sockets; both members
// are null afterwards.
void stop(Listening& listening);

}  // namespace penstock::rpc
