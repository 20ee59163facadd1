// SPDX-License-Identifier: Apache-2.0
#include "control/http/server.hpp"

#include <fcntl.h>
#include <netinet/in.h>

#include <array>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/post.hpp>
#include <chrono>
#include <future>
#include <string_view>
#include <utility>

#include "control/base/host_port.hpp"
#include "control/http/answer.hpp"
#include "control/http/server_impl.hpp"
#include "control/http/session.hpp"
#include "dataplane/base/ip.hpp"
#include "dataplane/base/socket_address.hpp"

namespace penstock::http {
namespace {

// After a failed accept, for example without free descriptors: an immediate retry would only use the CPU.
constexpr std::chrono::milliseconds kAcceptPause{100};

tcp::endpoint endpoint_of(const SocketAddress& socket) {
    const auto& bytes = socket.address.bytes();
    if (socket.address.is_v4()) {
        return {asio::ip::address_v4({bytes[12], bytes[13], bytes[14], bytes[15]}), socket.port};
    }
    return {asio::ip::address_v6(bytes), socket.port};
}

IpAddr address_of(const asio::ip::address& address) {
    if (address.is_v4()) {
        const auto bytes = address.to_v4().to_bytes();
        return IpAddr::v4(bytes[0], bytes[1], bytes[2], bytes[3]);
    }
    return IpAddr::v6(address.to_v6().to_bytes());
}

// "/healthz" of "/healthz?verbose=1" and of "http://192.0.2.1/healthz".
std::string_view path_of(std::string_view target) {
    if (!target.starts_with('/')) {
        const size_t scheme = target.find("://");
        const size_t path = scheme == std::string_view::npos ? scheme : target.find('/', scheme + 3);
        target = path == std::string_view::npos ? std::string_view("/") : target.substr(path);
    }
    return target.substr(0, target.find('?'));
}

Response not_found(const Routes& routes) {
    Response missing{.status = 404, .body = "available paths:\n"};
    for (const auto& [known, ignored] : routes) {
        missing.body += known + "\n";
    }
    return missing;
}

void close_on_exec(int fd) {
    ::fcntl(fd, F_SETFD, FD_CLOEXEC);
}

}  // namespace

// Any thread, because the loop accepts nothing for it yet.
Status Server::Impl::listen(const std::string& text, bool may_be_absent) {
    PENSTOCK_TRY(const auto parsed, SocketAddress::parse(text));
    const tcp::endpoint endpoint = endpoint_of(parsed);
    Listener& listener =
        listeners.emplace_back(Listener{tcp::acceptor(loop.io), asio::steady_timer(loop.io)});
    error_code error;
    const auto steps = [&] {
        if (listener.acceptor.open(endpoint.protocol(), error)) {
            return;
        }
        close_on_exec(listener.acceptor.native_handle());
        if (listener.acceptor.set_option(tcp::acceptor::reuse_address(true), error)) {
            return;
        }
        // 0.0.0.0 and [::] on the same port are two servers.
        if (endpoint.protocol() == tcp::v6() &&
            listener.acceptor.set_option(asio::ip::v6_only(true), error)) {
            return;
        }
        if (may_be_absent) {
            const int on = 1;  // for sockets of both families
            ::setsockopt(listener.acceptor.native_handle(), IPPROTO_IP, IP_FREEBIND, &on, sizeof(on));
        }
        if (!listener.acceptor.bind(endpoint, error)) {
            listener.acceptor.listen(tcp::acceptor::max_listen_connections, error);
        }
    };
    steps();
    if (error) {
        return fail(Errc::Unavailable, "HTTP cannot listen on " + text + ": " +
                                           listen_error(error.value(), std::to_string(endpoint.port())));
    }
    if (listeners.size() == 1) {
        port = listener.acceptor.local_endpoint(error).port();
    }
    return {};
}

void Server::Impl::accept(Listener& listener) {
    listener.acceptor.async_accept(
        [self = shared_from_this(), &listener](error_code error, tcp::socket socket) {
            if (self->is_closed) {
                return;
            }
            if (!error) {
                self->take(std::move(socket));
            } else if (error != asio::error::connection_aborted) {
                listener.pause.expires_after(kAcceptPause);
                listener.pause.async_wait([self, &listener](error_code) {
                    if (!self->is_closed) {
                        self->accept(listener);
                    }
                });
                return;
            }
            self->accept(listener);
        });
}

void Server::Impl::take(tcp::socket socket) {
    error_code error;
    const auto peer = socket.remote_endpoint(error);
    if (error) {
        return;  // already reset
    }
    close_on_exec(socket.native_handle());
    const ConnectionId id = ++loop.last_id;
    const auto evicted = loop.admission.admit(id, address_of(peer.address()));
    if (evicted) {
        loop.sessions.at(*evicted)->close();
    }
    const auto session = std::make_shared<Session>(std::move(socket), id, loop, shared_from_this());
    loop.sessions.emplace(id, session.get());
    sessions.emplace(id, session.get());
    session->read();
}

void Server::Impl::serve(const std::shared_ptr<Session>& session, bool is_get_or_head,
                         std::string_view target, bool with_gzip) {
    const auto answer_now = [&](Response response) {
        session->answer(std::make_shared<const Answer>(answer_of(std::move(response), false)), false);
    };
    if (!is_get_or_head) {
        answer_now({.status = 405,
                    .body = "only GET and HEAD are supported\n",
                    .headers = {{"Allow", "GET, HEAD"}}});
        return;
    }
    auto route = routes.find(path_of(target));
    if (route == routes.end()) {
        route = routes.find(kAnyPath);
    }
    if (route == routes.end()) {
        answer_now(not_found(routes));
    } else if (!route->second.is_heavy) {
        answer_now(route->second.make());
    } else {
        HeavyPage& page = heavy_pages[route->first];
        page.next.push_back({session, with_gzip});
        if (!page.is_being_made) {
            make_heavy(route->first, route->second);
        }
    }
}

void Server::Impl::make_heavy(const std::string& path, const Route& route) {
    HeavyPage& page = heavy_pages.at(path);
    page.is_being_made = true;
    asio::post(*heavy_thread,
               [self = shared_from_this(), &path, &route, waiting = std::exchange(page.next, {})]() mutable {
                   Response response = route.make();
                   std::array<std::shared_ptr<const Answer>, 2> answers;  // uncompressed, and gzip
                   for (const Waiting& request : waiting) {
                       auto& answer = answers[request.with_gzip ? 1 : 0];
                       if (answer == nullptr) {
                           answer = std::make_shared<const Answer>(answer_of(response, request.with_gzip));
                       }
                   }
                   asio::post(self->loop.io, [self, &path, &route, waiting = std::move(waiting), answers] {
                       if (self->is_closed) {
                           return;
                       }
                       for (const Waiting& request : waiting) {
                           request.session->answer(answers[request.with_gzip ? 1 : 0], true);
                       }
                       HeavyPage& made = self->heavy_pages.at(path);
                       made.is_being_made = false;
                       if (!made.next.empty()) {
                           self->make_heavy(path, route);
                       }
                   });
               });
}

void Server::Impl::close() {
    is_closed = true;
    for (Listener& listener : listeners) {
        error_code ignored;
        listener.acceptor.close(ignored);
        listener.pause.cancel(ignored);
    }
    while (!sessions.empty()) {
        sessions.begin()->second->close();
    }
    heavy_pages.clear();
}

Loop::Loop(AdmissionLimits limits) : impl_(std::make_unique<Impl>(limits)) {}

Loop::~Loop() {
    impl_->work.reset();
    impl_->thread.join();
}

Server::Server(std::shared_ptr<Loop> loop, std::shared_ptr<Impl> impl)
    : loop_(std::move(loop)), impl_(std::move(impl)) {}

Server::~Server() {
    std::promise<void> closed;
    asio::post(impl_->loop.io, [this, &closed] {
        impl_->close();
        closed.set_value();
    });
    closed.get_future().wait();
    if (impl_->heavy_thread) {
        impl_->heavy_thread->join();
    }
}

uint16_t Server::port() const {
    return impl_->port;
}

Status check_address(const std::string& address) {
    PENSTOCK_TRY_STATUS(SocketAddress::parse(address));
    return {};
}

Result<std::unique_ptr<Server>> Server::start(ServerOptions options, std::shared_ptr<Loop> loop) {
    auto impl = std::make_shared<Impl>(*loop->impl_, std::move(options.routes));
    for (const std::string& address : options.addresses) {
        PENSTOCK_TRY_STATUS(impl->listen(address, options.addresses_may_be_absent));
    }
    for (const auto& [path, route] : impl->routes) {
        if (route.is_heavy && !impl->heavy_thread) {
            impl->heavy_thread.emplace(1);
        }
    }
    asio::post(impl->loop.io, [impl] {
        for (Impl::Listener& listener : impl->listeners) {
            impl->accept(listener);
        }
    });
    return std::unique_ptr<Server>(new Server(std::move(loop), std::move(impl)));
}

}  // namespace penstock::http
