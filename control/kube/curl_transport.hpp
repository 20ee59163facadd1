// The transport over libcurl: one multi handle, HTTP/2 by ALPN with all requests on one connection, or HTTP/1.1 with one connection a
// watch.
//
//   start() -> waiting -> [credentials ready] -> carried by curl -> on_head, on_body... -> on_end
//
// Handlers are called from inside curl, where curl itself must not be called: start() only queues, and cancel() forgets the handler now and
// takes the handle out afterwards.
#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "control/kube/client_config.hpp"
#include "control/kube/credentials.hpp"
#include "control/kube/curl_transfer.hpp"
#include "control/kube/liveness.hpp"
#include "control/kube/transport.hpp"
#include "dataplane/base/result.hpp"

namespace penstock::kube {

struct TransportOptions {
    // Lets insecure-skip-tls-verify have its way (AUTH-006).
    bool allow_insecure = false;
    std::string user_agent = "penstock-sync";
    // A list of 250,000 endpoints has 100 MB; beyond ten times that it is an attack or another protocol (APISYNC-019).
    uint64_t body_bytes_max = 1ULL << 30;
    std::chrono::milliseconds connect_timeout = std::chrono::seconds(15);  // name, TCP and TLS together
    std::chrono::milliseconds tcp_keepalive = std::chrono::seconds(30);
    LivenessLimits liveness;
    // Load balancers redirect once, from "/x" to "/x/"; more is a circle.
    uint32_t redirects_max = 3;
    std::chrono::milliseconds insecure_warning_period = std::chrono::hours(1);
    CredentialTimes credentials;
};

class CurlTransport final : public Transport {
 public:
    // Reads and checks all that the configuration names; connects to nothing.
    [[nodiscard]] static Result<std::unique_ptr<CurlTransport>> create(const ClientConfig& config,
                                                                       const TransportOptions& options = {});
    // Ends all requests without call-backs.
    ~CurlTransport() override;

    RequestId start(Request request, ResponseHandler& handler) override;
    void cancel(RequestId id) override;
    void credentials_rejected() override { credentials_.rejected(); }
    [[nodiscard]] std::string without_secrets(std::string text) const override {
        return credentials_.without_secrets(std::move(text));
    }

    // Sends, receives and calls back until a call-back was made, wake() was called, or `wait` has passed. Not from inside a call-back.
    void poll(std::chrono::milliseconds wait);
    // Ends a poll(), now or the next one. Any thread.
    void wake();

    // Connections that were given up as half-open since the start.
    uint64_t half_open_connections() const { return half_open_connections_; }

 private:
    using Time = std::chrono::steady_clock::time_point;
    using Transfers = std::map<RequestId, std::unique_ptr<CurlTransfer>>;
    struct CurlMultiFree {
        void operator()(CURLM* multi) const { curl_multi_cleanup(multi); }
    };
    // A probe's answer is of no interest, only that the connection received something.
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
    std::vector<RequestId> cancelled_;  // inside curl, while it called back
    bool is_inside_curl_ = false;
    uint64_t call_backs_ = 0;
    std::atomic<bool> is_woken_ = false;
    std::set<std::string> warnings_;  // said already
    Time insecure_warning_at_;
    Time liveness_checked_at_;
    std::set<int> sockets_;
    std::map<int, ProbedConnection> probed_;
    ProbeHandler probe_handler_;
    uint64_t half_open_connections_ = 0;
    // Last: closing it calls close_socket.
    std::unique_ptr<CURLM, CurlMultiFree> multi_;
};

}  // namespace penstock::kube
