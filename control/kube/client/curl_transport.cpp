// SPDX-License-Identifier: Apache-2.0
#include "control/kube/client/curl_transport.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "control/log/log.hpp"
#include "dataplane/base/check.hpp"

namespace penstock::kube {
namespace {

using std::chrono::milliseconds;

// Polling interval for the exec plugin, which runs for about a second, a few times an hour.
constexpr milliseconds kPluginLook{20};
// Limit of the set of logged warnings, so that a server that numbers its warnings fills neither memory nor
// log.
constexpr size_t kWarningsMax = 256;

Status check_header_value(const std::string& what, const std::string& value) {
    const bool is_clean = std::ranges::none_of(
        value, [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; });
    return is_clean ? Status{} : fail(Errc::InvalidArgument, what + " holds control characters");
}

Status check_impersonation(const Impersonation& as) {
    std::vector<std::string> values = {as.user, as.uid};
    values.insert(values.end(), as.groups.begin(), as.groups.end());
    for (const auto& [key, extra] : as.extra) {
        values.insert(values.end(), extra.begin(), extra.end());
    }
    for (const std::string& value : values) {
        PENSTOCK_TRY_STATUS(check_header_value("as, as-uid, as-groups or as-user-extra", value));
    }
    return {};
}

}  // namespace

Result<std::unique_ptr<CurlTransport>> CurlTransport::create(const ClientConfig& config,
                                                             const TransportOptions& options) {
    // Once per process; there is no matching clean-up, since other users of libcurl could still exist.
    static const CURLcode initialized = curl_global_init(CURL_GLOBAL_DEFAULT);
    if (initialized != CURLE_OK) {
        return fail(Errc::Internal, std::string("libcurl: ") + curl_easy_strerror(initialized));
    }
    if (config.insecure_skip_tls_verify && !options.allow_insecure) {
        return fail(Errc::PermissionDenied, config.origin +
                                                ": insecure-skip-tls-verify: the server's identity would not "
                                                "be verified; to permit this, pass "
                                                "--insecure-skip-tls-verify-allowed");
    }
    PENSTOCK_TRY_IN(config.origin, auto server, ServerUrl::parse(config.server));
    PENSTOCK_TRY_STATUS_IN(config.origin, check_impersonation(config.impersonate));
    PENSTOCK_TRY(auto credentials, Credentials::open(config, options.credentials, Instant::now()));
    TransferSettings settings{.config = config,
                              .server = std::move(server),
                              .user_agent = options.user_agent,
                              .body_bytes_max = options.body_bytes_max,
                              .connect_timeout = options.connect_timeout,
                              .tcp_keepalive = options.tcp_keepalive,
                              .redirects_max = options.redirects_max};
    std::unique_ptr<CurlTransport> transport(
        new CurlTransport(std::move(settings), options, std::move(credentials)));
    if (!transport->multi_) {
        return fail(Errc::Exhausted, "libcurl: out of memory");
    }
    return transport;
}

CurlTransport::CurlTransport(TransferSettings settings, const TransportOptions& options,
                             Credentials credentials)
    : settings_(std::move(settings)),
      options_(options),
      credentials_(std::move(credentials)),
      multi_(curl_multi_init()) {
    settings_.open_socket = &CurlTransport::open_socket;
    settings_.close_socket = &CurlTransport::close_socket;
    settings_.head_seen = [](void* self, const CurlTransfer& transfer) {
        static_cast<CurlTransport*>(self)->log_warnings(transfer);
    };
    settings_.owner = this;
}

CurlTransport::~CurlTransport() {
    for (auto& [id, transfer] : running_) {
        transfer->forget();
        curl_multi_remove_handle(multi_.get(), transfer->handle());
    }
    running_.clear();
}

curl_socket_t CurlTransport::open_socket(void* self, curlsocktype, curl_sockaddr* address) {
    const int socket = ::socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
    if (socket < 0) {
        return CURL_SOCKET_BAD;
    }
    static_cast<CurlTransport*>(self)->sockets_.insert(socket);
    return socket;
}

int CurlTransport::close_socket(void* self, curl_socket_t socket) {
    auto& transport = *static_cast<CurlTransport*>(self);
    transport.sockets_.erase(socket);
    transport.probed_.erase(socket);
    return ::close(socket);
}

Transport::RequestId CurlTransport::start(Request request, ResponseHandler& handler) {
    const RequestId id{next_id_++};
    waiting_.push_back(std::make_unique<CurlTransfer>(id, std::move(request), handler));
    return id;
}

void CurlTransport::cancel(RequestId id) {
    // Inside a callback of start_waiting() the transfer may be in neither container; then it has ended.
    std::erase_if(waiting_, [&](const auto& transfer) { return transfer->id() == id; });
    const auto at = running_.find(id);
    if (at == running_.end()) {
        return;
    }
    at->second->forget();
    if (is_inside_curl_) {
        cancelled_.push_back(id);
        return;
    }
    curl_multi_remove_handle(multi_.get(), at->second->handle());
    running_.erase(at);
}

void CurlTransport::wake() {
    is_woken_ = true;
    curl_multi_wakeup(multi_.get());
}

void CurlTransport::poll(milliseconds wait) {
    PENSTOCK_CHECK(!is_inside_curl_);
    const Time deadline = std::chrono::steady_clock::now() + wait;
    const uint64_t before = call_backs_;
    while (true) {
        const Time now = std::chrono::steady_clock::now();
        warn_insecure(now);
        start_waiting(now);
        perform();
        reap();
        check_liveness(std::chrono::steady_clock::now());
        const Time after = std::chrono::steady_clock::now();
        if (call_backs_ != before || is_woken_.exchange(false) || after >= deadline) {
            return;
        }
        // After a followed redirect, or a request started by a callback: there is work at once.
        if (!waiting_.empty() && !is_pending_) {
            continue;
        }
        const auto left = std::chrono::ceil<milliseconds>(deadline - after);
        curl_multi_poll(multi_.get(), nullptr, 0, static_cast<int>(std::min(left, longest_sleep()).count()),
                        nullptr);
    }
}

milliseconds CurlTransport::longest_sleep() const {
    if (is_pending_) {
        return kPluginLook;
    }
    const LivenessLimits& limits = options_.liveness;
    // A quarter of the shortest limit: half-open connections are detected at most this much too late.
    const milliseconds shortest = std::min({limits.silence_max, limits.probe_after, limits.probe_answer_max});
    return std::clamp(shortest / 4, milliseconds(10), milliseconds(1000));
}

void CurlTransport::start_waiting(Time now) {
    if (waiting_.empty() && !is_pending_) {
        return;
    }
    const Credentials::State state = credentials_.refresh(Instant::now());
    is_pending_ = state == Credentials::State::Pending;
    if (is_pending_) {
        return;
    }
    // Failures run callbacks, which may start and cancel requests. Therefore one transfer at a time is taken
    // off the front, and at most as many as are queued now.
    for (size_t left = waiting_.size(); left > 0 && !waiting_.empty(); --left) {
        std::unique_ptr<CurlTransfer> transfer = std::move(waiting_.front());
        waiting_.erase(waiting_.begin());
        if (state == Credentials::State::Failed) {
            const TransportError error{TransportError::Kind::Credentials,
                                       transfer->subject(settings_) + credentials_.failure()};
            ++call_backs_;
            transfer->handler()->on_end(error);
        } else {
            begin(std::move(transfer), now);
        }
    }
}

void CurlTransport::begin(std::unique_ptr<CurlTransfer> transfer, Time now) {
    CURL* handle = transfer->prepare(settings_, credentials_.tls(), credentials_.token(), now);
    if (handle == nullptr || curl_multi_add_handle(multi_.get(), handle) != CURLM_OK) {
        ++call_backs_;
        transfer->handler()->on_end(TransportError{TransportError::Kind::Broken,
                                                   transfer->subject(settings_) + "libcurl: out of memory"});
        return;
    }
    log::get("kube").trace("{}started as {}", transfer->subject(settings_), transfer->id().value);
    const RequestId id = transfer->id();
    running_.emplace(id, std::move(transfer));
}

void CurlTransport::perform() {
    // Heads and bodies are delivered from inside curl; no transfer leaves the map there.
    const auto handed_on = [this] {
        uint64_t sum = 0;
        for (const auto& [id, transfer] : running_) {
            sum += transfer->call_backs();
        }
        return sum;
    };
    const uint64_t before = handed_on();
    int still_running = 0;
    is_inside_curl_ = true;
    curl_multi_perform(multi_.get(), &still_running);
    is_inside_curl_ = false;
    call_backs_ += handed_on() - before;
    remove_cancelled();
}

void CurlTransport::remove_cancelled() {
    for (const RequestId id : std::exchange(cancelled_, {})) {
        cancel(id);
    }
}

void CurlTransport::reap() {
    int left = 0;
    while (const CURLMsg* message = curl_multi_info_read(multi_.get(), &left)) {
        if (message->msg != CURLMSG_DONE) {
            continue;
        }
        // The message becomes invalid when the handle is removed.
        const CURLcode code = message->data.result;
        CurlTransfer* transfer = nullptr;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &transfer);
        const auto at = running_.find(transfer->id());
        std::optional<TransportError> error = transfer->outcome(code, settings_);
        curl_multi_remove_handle(multi_.get(), transfer->handle());
        if (!error) {
            const Result<bool> followed = transfer->follow_redirect(settings_);
            if (followed && *followed &&
                curl_multi_add_handle(multi_.get(), transfer->handle()) == CURLM_OK) {
                continue;
            }
            if (!followed) {
                error = TransportError{TransportError::Kind::Redirect, followed.error().what};
            }
        }
        const bool is_timeout = error && error->kind == TransportError::Kind::Timeout;
        const long port = transfer->local_port();
        const milliseconds waited = transfer->request().timeout;
        finish(at, error);
        if (is_timeout) {
            give_up_if_silent(port, waited);
        }
    }
}

// The handle has already been removed from the multi handle.
void CurlTransport::finish(Transfers::iterator at, const std::optional<TransportError>& error) {
    const std::unique_ptr<CurlTransfer> transfer = std::move(at->second);
    running_.erase(at);
    if (error) {
        const TransportError shown{error->kind, credentials_.without_secrets(error->what)};
        log::get("kube").debug("{}", shown.what);
        if (transfer->handler() != nullptr) {
            ++call_backs_;
            transfer->handler()->on_end(shown);
        }
        return;
    }
    log::get("kube").trace("{}{}", transfer->subject(settings_), transfer->head().status);
    if (transfer->handler() != nullptr) {
        ++call_backs_;
        transfer->handler()->on_end(std::nullopt);
    }
}

void CurlTransport::log_warnings(const CurlTransfer& transfer) {
    for (const std::string& warning : transfer.head().warnings) {
        if (warnings_.size() >= kWarningsMax || !warnings_.insert(warning).second) {
            continue;
        }
        log::get("kube").warn("{}warning from the server: {}", transfer.subject(settings_),
                              credentials_.without_secrets(warning));
        if (warnings_.size() == kWarningsMax) {
            log::get("kube").warn("{} different warnings from the server; further ones are not logged",
                                  kWarningsMax);
        }
    }
}

void CurlTransport::warn_insecure(Time now) {
    if (!settings_.config.insecure_skip_tls_verify || now < insecure_warning_at_) {
        return;
    }
    log::get("kube").warn(
        "{}: insecure-skip-tls-verify: the server's identity is not verified, so a man in the middle can "
        "read the credentials",
        settings_.server.origin());
    insecure_warning_at_ = now + options_.insecure_warning_period;
}

}  // namespace penstock::kube
