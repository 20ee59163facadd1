// SPDX-License-Identifier: Apache-2.0
// Mutual TLS of a gRPC server whose files may change while it runs. New connections use the current files;
// open connections stay open. Client certificates are verified here instead of in gRPC's handshake, so that a
// refusal is logged with subject and reason. A refused client is disconnected before its first byte of HTTP/2
// is read.
#pragma once

#include <grpcpp/security/server_credentials.h>

#include <memory>

#include "control/tls/watch.hpp"
#include "dataplane/base/result.hpp"

namespace penstock::rpc {

class ServerTls {
 public:
    // Errors name the option and the file.
    static Result<std::unique_ptr<ServerTls>> start(tls::Files files);
    ~ServerTls();  // call after the server that uses it has been destroyed
    ServerTls(const ServerTls&) = delete;
    ServerTls& operator=(const ServerTls&) = delete;

    [[nodiscard]] std::shared_ptr<grpc::ServerCredentials> credentials();
    [[nodiscard]] tls::Watch& watch();

 private:
    struct Impl;
    explicit ServerTls(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

}  // namespace penstock::rpc
