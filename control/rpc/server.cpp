// SPDX-License-Identifier: Apache-2.0
#include "control/rpc/server.hpp"

#include <grpcpp/grpcpp.h>

#include <array>

#include "control/rpc/auth.hpp"
#include "control/rpc/config_service.hpp"
#include "control/rpc/debug_service.hpp"
#include "control/rpc/peer_service.hpp"
#include "control/rpc/server_tls.hpp"
#include "control/rpc/status_service.hpp"

namespace penstock::rpc {

struct Server::Impl {
    Impl(const ServerOptions& options, const Backends& backends)
        : authorizer(options.tls_admin_names),
          config(backends.state, authorizer),
          status(backends.status, authorizer),
          debug(backends.debug, authorizer),
          peers(backends.peers, authorizer) {}

    Authorizer authorizer;
    ConfigService config;
    StatusService status;
    DebugService debug;
    PeerService peers;
    std::unique_ptr<ServerTls> tls;  // null: no TCP
    Listening listening;
};

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Server::~Server() {
    stop();
}

Result<std::unique_ptr<Server>> Server::start(const ServerOptions& options, const Backends& backends) {
    auto impl = std::make_unique<Impl>(options, backends);
    const std::array<grpc::Service*, 4> services{&impl->config, &impl->status, &impl->debug, &impl->peers};
    if (!options.tcp_addresses.empty()) {
        PENSTOCK_TRY(impl->tls, ServerTls::start({options.tls_cert, options.tls_key, options.tls_client_ca}));
    }
    PENSTOCK_TRY(impl->listening,
                 listen(options, "penstockd", services, impl->tls ? impl->tls->credentials() : nullptr));
    return std::unique_ptr<Server>(new Server(std::move(impl)));
}

void Server::announce_identity() {
    impl_->config.announce_identity();
}

void Server::announce_observed() {
    impl_->config.announce_observed();
}

void Server::set_serving(bool is_serving) {
    if (grpc::HealthCheckServiceInterface* health = impl_->listening.server->GetHealthCheckService()) {
        health->SetServingStatus(is_serving);
    }
}

tls::Watch* Server::tls() const {
    return impl_->tls ? &impl_->tls->watch() : nullptr;
}

const TcpAcceptor* Server::tcp() const {
    return impl_->listening.tcp.get();
}

void Server::stop_copies() {
    impl_->peers.stop();
}

void Server::stop() {
    stop_copies();
    rpc::stop(impl_->listening);
}

}  // namespace penstock::rpc
