// SPDX-License-Identifier: Apache-2.0
// The transport over libcurl: one multi handle. HTTP/2 by ALPN with all requests on one connection, or
// HTTP/1.1 with one connection per watch.
//
//   start() -> waiting -> [credentials ready] -> executed by curl -> on_head, on_body... -> on_end
//
// Handlers are called from inside curl, where curl functions must not be called. start() therefore only
// queues the request, and cancel() detaches the handler at once and removes the handle later.
#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "control/kube/client/client_config.hpp"
#include "control/kube/client/credentials.hpp"
#include "control/kube/client/curl_transfer.hpp"
#include "control/kube/liveness.hpp"
#include "control/kube/transport.hpp"
#include "dataplane/base/result.hpp"

namespace penstock::kube {

struct TransportOptions {
    // Permits insecure-skip-tls-verify (AUTH-006).
    bool allow_insecure = false;
    std::string user_agent = "penstock-sync";
    // A list of 250,000 endpoints has 100 MB; a body of more than ten times that is an attack or another
    // protocol (APISYNC-019).
    uint64_t body_bytes_max = 1ULL << 30;
    std::chrono::milliseconds connect_timeout = std::chrono::seconds(15);  // DNS lookup, TCP and TLS together
    std::chrono::milliseconds tcp_keepalive = std::chrono::seconds(30);
    LivenessLimits liveness;
    // Load balancers redirect once, from "/x" to "/x/"; more redirects indicate a loop.
    uint32_t redirects_max = 3;
    std::chrono::milliseconds insecure_warning_period = std::chrono::hours(1);
    CredentialTimes credentials;
};

class CurlTransport final : public Transport {
 public:
    // Reads and validates everything that the configuration names; opens no connection.
    [[nodiscard]] static Result<std::unique_ptr<CurlTransport>> create(const ClientConfig& config,
                                                                       const TransportOptions& options = {});
    // Ends all requests without callbacks.
    ~CurlTransport() override;

    RequestId start(Request request, ResponseHandler& handler) override;
    void cancel(RequestId id) override;
    void credentials_rejected() override { credentials_.rejected(); }
    [[nodiscard]] std::string without_secrets(std::string text) const override {
        return credentials_.without_secrets(std::move(text));
    }

    // Sends, receives and runs callbacks until a callback ran, wake() was called, or `wait` has passed. Must
    // not be called from inside a callback.
    void poll(std::chrono::milliseconds wait);
    // Ends the current poll(), or the next one. Any thread.
    void wake();

    // Connections closed as half-open since start.
    uint64_t half_open_connections() const { return half_open_connections_; }

 private:
    using Time = std::chrono::steady_clock::time_point;
    using Transfers = std::map<RequestId, std::unique_ptr<CurlTransfer>>;
    struct CurlMultiFree {
        void operator()(CURLM* multi) const { curl_multi_cleanup(multi); }
    };
    // The content of a probe's response is ignored; only the fact that the connection received data matters.
    struct ProbeHandler final : ResponseHandler {
        void on_head(const ResponseHead&) override {}
        void on_body(std::string_view) override {}
        void on_end(const std::optional<TransportError>&) override {}
    };

    CurlTransport(TransferSettings settings, const TransportOptions& options, Credentials credentials);
    static curl_socket_t open_socket(void* self, curlsocktype purpose, curl_sockaddr* address);
    static int close_socket(void* self, curl_socket_t socket);

    void start_waiting(Time now);
    void begin(std::unique_ptr<CurlTransfer> transfer, Time now);
    void perform();
    void reap();
    void finish(Transfers::iterator at, const std::optional<TransportError>& error);
    void remove_cancelled();
    void log_warnings(const CurlTransfer& transfer);
    void warn_insecure(Time now);
    void check_liveness(Time now);
    void probe(Time now);
    void give_up_if_silent(long port, std::chrono::milliseconds waited);
    void give_up(int socket, const std::string& reason);
    void give_up(RequestId id, const std::string& reason);
    std::map<long, int> sockets_by_port();
    std::chrono::milliseconds longest_sleep() const;

    TransferSettings settings_;
    TransportOptions options_;
    Credentials credentials_;
    uint64_t next_id_ = 1;
    std::vector<std::unique_ptr<CurlTransfer>> waiting_;
    bool is_pending_ = false;  // on the exec plugin
    Transfers running_;
    std::vector<RequestId> cancelled_;  // by callbacks inside curl
    bool is_inside_curl_ = false;
    uint64_t call_backs_ = 0;
    std::atomic<bool> is_woken_ = false;
    std::set<std::string> warnings_;  // already logged
    Time insecure_warning_at_;
    Time liveness_checked_at_;
    std::set<int> sockets_;
    std::map<int, ProbedConnection> probed_;
    ProbeHandler probe_handler_;
    uint64_t half_open_connections_ = 0;
    // Last member: closing it calls close_socket.
    std::unique_ptr<CURLM, CurlMultiFree> multi_;
};

}  // namespace penstock::kube
