// SPDX-License-Identifier: Apache-2.0
// Detection of half-open connections of the transport (docs/adr/0013): the time without a received byte,
// probes, and the end of all requests on a connection that is given up.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "control/kube/client/curl_transport.hpp"
#include "control/log/log.hpp"

namespace penstock::kube {
namespace {

using std::chrono::milliseconds;

// The kernel measures the time since the last byte in its own ticks, of up to 10 ms.
constexpr milliseconds kKernelTick{10};

long port_of(int socket) {
    sockaddr_storage address{};
    socklen_t length = sizeof(address);
    if (::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &length) != 0) {
        return 0;
    }
    if (address.ss_family == AF_INET) {
        return ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
    }
    return address.ss_family == AF_INET6 ? ntohs(reinterpret_cast<const sockaddr_in6&>(address).sin6_port)
                                         : 0;
}

// Any byte counts: data, the response to a PING, or a window update, because each proves that the peer is
// alive.
milliseconds since_last_byte(int socket) {
    tcp_info info{};
    socklen_t length = sizeof(info);
    return ::getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &length) == 0
               ? milliseconds(info.tcpi_last_data_recv)
               : milliseconds(0);
}

std::string seconds(milliseconds time) {
    return fmt::format("{:g} s", static_cast<double>(time.count()) / 1000);
}

}  // namespace

std::map<long, int> CurlTransport::sockets_by_port() {
    std::map<long, int> by_port;
    for (const int socket : sockets_) {
        if (const long port = port_of(socket); port > 0) {
            by_port.emplace(port, socket);
        }
    }
    return by_port;
}

void CurlTransport::check_liveness(Time now) {
    if (running_.empty() || now - liveness_checked_at_ < longest_sleep() / 2) {
        return;
    }
    liveness_checked_at_ = now;
    const std::map<long, int> sockets = sockets_by_port();
    std::set<int> http2;
    std::vector<RequestId> silent;
    for (const auto& [id, transfer] : running_) {
        const auto socket = sockets.find(transfer->local_port());
        if (transfer->is_http2() && socket != sockets.end()) {
            http2.insert(socket->second);
        } else if (transfer->request().watch &&
                   now - transfer->last_byte_at() >= options_.liveness.silence_max) {
            silent.push_back(id);
        }
    }
    for (const int socket : http2) {
        const Time last_received = now - since_last_byte(socket);
        switch (probed_[socket].step(now, last_received, options_.liveness)) {
            case ProbedConnection::Step::Wait:
                break;
            case ProbedConnection::Step::Probe:
                probe(now);
                break;
            case ProbedConnection::Step::GiveUp:
                give_up(
                    socket,
                    fmt::format("half-open: nothing received for {}, and no response to a probe within {}",
                                seconds(std::chrono::floor<milliseconds>(now - last_received)),
                                seconds(options_.liveness.probe_answer_max)));
                break;
        }
    }
    for (const RequestId id : silent) {
        const auto at = running_.find(id);
        if (at == running_.end()) {
            continue;
        }
        const std::string reason =
            "half-open: nothing received for " + seconds(options_.liveness.silence_max);
        const auto socket = sockets.find(at->second->local_port());
        if (socket != sockets.end()) {
            give_up(socket->second, reason);
        } else {
            ++half_open_connections_;
            give_up(id, reason);
        }
    }
}

// libcurl has no usable PING here: curl_easy_upkeep() supports only connections of curl_easy_perform()
// (libcurl 7.88, lib/easy.c). A request on the same connection has the same effect. /version needs no rights,
// is small, and exists in all Kubernetes versions; any response is sufficient
// (docs/adr/0013-detection-of-dead-api-server-connections.md).
void CurlTransport::probe(Time now) {
    // This limit is only for the case that the probe is sent on a second connection: check_liveness() decides
    // about the probed one.
    const Request request{.target = "/version", .timeout = 2 * options_.liveness.probe_answer_max};
    begin(std::make_unique<CurlTransfer>(RequestId{next_id_++}, request, probe_handler_), now);
}

// A request that times out without a response ends only its own stream. Its HTTP/2 connection would stay in
// the pool and stall the next request too, unless a watch runs on it, whose silence is detected. A silent
// connection is therefore closed here. (An HTTP/1.1 connection has been closed with the request.)
void CurlTransport::give_up_if_silent(long port, milliseconds waited) {
    const auto sockets = sockets_by_port();
    const auto socket = sockets.find(port);
    if (socket == sockets.end()) {
        return;
    }
    const milliseconds silence = since_last_byte(socket->second);
    if (silence + kKernelTick >= std::min(waited, options_.liveness.probe_answer_max)) {
        give_up(socket->second,
                "half-open: nothing received for " + seconds(silence) + ", and a request timed out");
    }
}

// Ends all transfers on this connection, and the connection: removing only an HTTP/2 stream would leave the
// connection in the pool for the next request.
void CurlTransport::give_up(int socket, const std::string& reason) {
    ++half_open_connections_;
    const long port = port_of(socket);
    ::shutdown(socket, SHUT_RDWR);
    probed_.erase(socket);
    std::vector<RequestId> carried;
    for (const auto& [id, transfer] : running_) {
        if (port > 0 && transfer->local_port() == port) {
            carried.push_back(id);
        }
    }
    log::get("kube").warn("{}: connection closed: {}", settings_.server.origin(), reason);
    for (const RequestId id : carried) {
        give_up(id, reason);
    }
}

void CurlTransport::give_up(RequestId id, const std::string& reason) {
    const auto at = running_.find(id);
    if (at == running_.end()) {
        return;  // cancelled by an earlier callback of this loop
    }
    const TransportError error{TransportError::Kind::Broken, at->second->subject(settings_) + reason};
    curl_multi_remove_handle(multi_.get(), at->second->handle());
    finish(at, error);
}

}  // namespace penstock::kube
