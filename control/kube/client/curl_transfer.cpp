// SPDX-License-Identifier: Apache-2.0
#include "control/kube/client/curl_transfer.hpp"

#include <algorithm>

namespace penstock::kube {
namespace {

// libcurl passes on at most 16 KiB at a time; this is the size of one read from the kernel.
constexpr long kReceiveBytes = 256 << 10;

void set(CURL* handle, CURLoption option, const std::string& text) {
    curl_easy_setopt(handle, option, text.c_str());
}

// curl copies it: a connection keeps its certificates after the request has ended.
void set_blob(CURL* handle, CURLoption option, const std::string& text) {
    curl_blob blob{.data = const_cast<char*>(text.data()), .len = text.size(), .flags = CURL_BLOB_COPY};
    curl_easy_setopt(handle, option, &blob);
}

std::string url_part(CURLU* url, CURLUPart part, unsigned flags = 0) {
    char* text = nullptr;
    if (curl_url_get(url, part, &text, flags) != CURLUE_OK || text == nullptr) {
        return {};
    }
    std::string copy(text);
    curl_free(text);
    return copy;
}

std::string escaped_by_curl(const std::string& text) {
    char* encoded = curl_easy_escape(nullptr, text.c_str(), static_cast<int>(text.size()));
    std::string copy(encoded == nullptr ? "" : encoded);
    curl_free(encoded);
    return copy;
}

// Go excludes the loopback from the proxies of the environment, and so does kubectl; curl would not.
bool is_loopback(const std::string& host) {
    return host == "localhost" || host.starts_with("127.") || host == "[::1]";
}

TransportError::Kind error_kind(CURLcode code, std::string_view text) {
    switch (code) {
        case CURLE_COULDNT_RESOLVE_HOST:
        case CURLE_COULDNT_RESOLVE_PROXY:
        case CURLE_COULDNT_CONNECT:
        case CURLE_PROXY:
            return TransportError::Kind::Connect;
        case CURLE_SSL_CONNECT_ERROR:
        case CURLE_PEER_FAILED_VERIFICATION:
        case CURLE_SSL_CERTPROBLEM:
        case CURLE_SSL_CIPHER:
        case CURLE_SSL_CACERT_BADFILE:
        case CURLE_SSL_ISSUER_ERROR:
        case CURLE_SSL_ENGINE_INITFAILED:
            return TransportError::Kind::Tls;
        default:
            // In TLS 1.3 a server verifies the client's certificate after the client has completed the
            // handshake: its alert arrives with the first read.
            return text.find("alert") != std::string_view::npos && text.find("SSL") != std::string_view::npos
                       ? TransportError::Kind::Tls
                       : TransportError::Kind::Broken;
    }
}

}  // namespace

Result<ServerUrl> ServerUrl::parse(const std::string& text) {
    const std::unique_ptr<CURLU, CurlFree> url(curl_url());
    if (!url || curl_url_set(url.get(), CURLUPART_URL, text.c_str(), 0) != CURLUE_OK) {
        return fail(Errc::InvalidArgument, "server " + text + " is not a URL");
    }
    ServerUrl server{.scheme = url_part(url.get(), CURLUPART_SCHEME),
                     .host = url_part(url.get(), CURLUPART_HOST),
                     .port = url_part(url.get(), CURLUPART_PORT, CURLU_DEFAULT_PORT),
                     .prefix = url_part(url.get(), CURLUPART_PATH)};
    while (server.prefix.ends_with('/')) {
        server.prefix.pop_back();
    }
    if (server.scheme != "https" && server.scheme != "http") {
        return fail(Errc::InvalidArgument, "server " + text + " must start with https:// or http://");
    }
    return server;
}

CURL* CurlTransfer::prepare(const TransferSettings& settings, const std::shared_ptr<const TlsMaterial>& tls,
                            const Secret& token, Time now) {
    handle_.reset(curl_easy_init());
    if (!handle_) {
        return nullptr;
    }
    last_byte_at_ = now;
    settings_ = &settings;
    path_ = settings.server.prefix + request_.target;
    CURL* handle = handle_.get();
    curl_easy_setopt(handle, CURLOPT_PRIVATE, this);
    curl_easy_setopt(handle, CURLOPT_ERRORBUFFER, error_);
    curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
    // curl resolves names on its own thread. Ending a request would wait for that thread, up to the
    // resolver's timeout of half a minute. With this option the thread is detached instead and cleans up by
    // itself.
    curl_easy_setopt(handle, CURLOPT_QUICK_EXIT, 1L);
    curl_easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(handle, CURLOPT_PATH_AS_IS, 1L);
    curl_easy_setopt(handle, CURLOPT_BUFFERSIZE, kReceiveBytes);
    const bool may_be_http2 = settings.server.scheme == "https";
    curl_easy_setopt(handle, CURLOPT_HTTP_VERSION,
                     static_cast<long>(may_be_http2 ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1));
    // A second request waits until curl has determined whether the first connection supports multiplexing,
    // instead of opening its own. Disabled without ALPN: the second request would wait until the first one,
    // possibly a watch, has ended.
    curl_easy_setopt(handle, CURLOPT_PIPEWAIT, may_be_http2 ? 1L : 0L);
    curl_easy_setopt(handle, CURLOPT_HEADERFUNCTION, &CurlTransfer::on_header);
    curl_easy_setopt(handle, CURLOPT_HEADERDATA, this);
    curl_easy_setopt(handle, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, &CurlTransfer::on_body);
    curl_easy_setopt(handle, CURLOPT_WRITEDATA, this);
    curl_easy_setopt(handle, CURLOPT_OPENSOCKETFUNCTION, settings.open_socket);
    curl_easy_setopt(handle, CURLOPT_OPENSOCKETDATA, settings.owner);
    curl_easy_setopt(handle, CURLOPT_CLOSESOCKETFUNCTION, settings.close_socket);
    curl_easy_setopt(handle, CURLOPT_CLOSESOCKETDATA, settings.owner);
    const long keepalive_seconds =
        std::max<long>(1, static_cast<long>(settings.tcp_keepalive.count() / 1000));
    curl_easy_setopt(handle, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(handle, CURLOPT_TCP_KEEPIDLE, keepalive_seconds);
    curl_easy_setopt(handle, CURLOPT_TCP_KEEPINTVL, std::max<long>(1, keepalive_seconds / 3));
    curl_easy_setopt(handle, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(settings.connect_timeout.count()));
    curl_easy_setopt(handle, CURLOPT_TIMEOUT_MS, static_cast<long>(request_.timeout.count()));
    // An Accept-Encoding is always sent, and the response is decoded whatever was requested: some proxies
    // compress unrequested.
    const bool wants_gzip = request_.accept_gzip && !request_.watch && !settings.config.disable_compression;
    curl_easy_setopt(handle, CURLOPT_ACCEPT_ENCODING, wants_gzip ? "gzip" : "identity");
    if (!settings.config.proxy_url.is_empty()) {
        set(handle, CURLOPT_PROXY, settings.config.proxy_url.reveal());
        curl_easy_setopt(handle, CURLOPT_NOPROXY, "");
    } else if (is_loopback(settings.server.host)) {
        curl_easy_setopt(handle, CURLOPT_NOPROXY, "*");
    }
    set_tls(settings, *tls);
    set_method();
    set_headers(settings, token);
    set_url(settings);
    return handle;
}

void CurlTransfer::set_tls(const TransferSettings& settings, const TlsMaterial& tls) {
    CURL* handle = handle_.get();
    const bool verifies = !settings.config.insecure_skip_tls_verify;
    curl_easy_setopt(handle, CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
    curl_easy_setopt(handle, CURLOPT_SSL_VERIFYPEER, verifies ? 1L : 0L);
    curl_easy_setopt(handle, CURLOPT_SSL_VERIFYHOST, verifies ? 2L : 0L);
    if (!tls.ca.empty()) {
        set_blob(handle, CURLOPT_CAINFO_BLOB, tls.ca);
        // Otherwise the system CAs would be trusted beside the cluster's CA.
        curl_easy_setopt(handle, CURLOPT_CAPATH, nullptr);
    }
    if (!tls.certificate.empty()) {
        set_blob(handle, CURLOPT_SSLCERT_BLOB, tls.certificate);
        set_blob(handle, CURLOPT_SSLKEY_BLOB, tls.key.reveal());
    }
}

void CurlTransfer::set_method() {
    CURL* handle = handle_.get();
    if (!request_.body.empty() || request_.method == "POST") {
        curl_easy_setopt(handle, CURLOPT_POST, 1L);
        curl_easy_setopt(handle, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request_.body.size()));
        curl_easy_setopt(handle, CURLOPT_POSTFIELDS, request_.body.c_str());
    }
    if (request_.method != "GET" && request_.method != "POST") {
        set(handle, CURLOPT_CUSTOMREQUEST, request_.method);
    }
}

void CurlTransfer::set_headers(const TransferSettings& settings, const Secret& token) {
    const auto add = [&](const std::string& line) {
        curl_slist* grown = curl_slist_append(headers_.get(), line.c_str());
        if (grown != nullptr && !headers_) {
            headers_.reset(grown);
        }
    };
    add("Accept: application/json");
    add("Expect:");  // no 100-continue: it would cost a round trip, and some servers never respond to it
    if (!request_.content_type.empty()) {
        add("Content-Type: " + request_.content_type);
    }
    if (!token.is_empty()) {
        add("Authorization: Bearer " + token.reveal());
    }
    const Impersonation& as = settings.config.impersonate;
    if (!as.user.empty()) {
        add("Impersonate-User: " + as.user);
    }
    if (!as.uid.empty()) {
        add("Impersonate-Uid: " + as.uid);
    }
    for (const std::string& group : as.groups) {
        add("Impersonate-Group: " + group);
    }
    for (const auto& [key, values] : as.extra) {
        for (const std::string& value : values) {
            add("Impersonate-Extra-" + escaped_by_curl(key) + ": " + value);
        }
    }
    if (!settings.config.tls_server_name.empty()) {
        add("Host: " + settings.server.host + ":" + settings.server.port);
    }
    set(handle_.get(), CURLOPT_USERAGENT, settings.user_agent);
    curl_easy_setopt(handle_.get(), CURLOPT_HTTPHEADER, headers_.get());
}

// curl uses the name in the URL for SNI and verification. The URL therefore contains tls-server-name, and
// CONNECT_TO maps it to the real host.
void CurlTransfer::set_url(const TransferSettings& settings) {
    const ServerUrl& server = settings.server;
    const std::string& name = settings.config.tls_server_name;
    if (name.empty()) {
        set(handle_.get(), CURLOPT_URL, server.origin() + path_);
        return;
    }
    if (!connect_to_) {
        connect_to_.reset(curl_slist_append(
            nullptr, (name + ":" + server.port + ":" + server.host + ":" + server.port).c_str()));
        curl_easy_setopt(handle_.get(), CURLOPT_CONNECT_TO, connect_to_.get());
    }
    set(handle_.get(), CURLOPT_URL, server.scheme + "://" + name + ":" + server.port + path_);
}

bool CurlTransfer::is_redirect() const {
    const int status = head_.head().status;
    if (head_.head().location.empty()) {
        return false;
    }
    return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

Result<bool> CurlTransfer::follow_redirect(const TransferSettings& settings) {
    if (!head_.is_complete() || !is_redirect()) {
        return false;
    }
    const std::string refused = subject(settings) + "redirect " + std::to_string(head_.head().status);
    const std::unique_ptr<CURLU, CurlFree> url(curl_url());
    if (!url ||
        curl_url_set(url.get(), CURLUPART_URL, (settings.server.origin() + path_).c_str(),
                     CURLU_PATH_AS_IS) != CURLUE_OK ||
        curl_url_set(url.get(), CURLUPART_URL, head_.head().location.c_str(), CURLU_PATH_AS_IS) !=
            CURLUE_OK) {
        return fail(Errc::InvalidArgument, refused + " to an invalid URL");
    }
    const ServerUrl target{.scheme = url_part(url.get(), CURLUPART_SCHEME),
                           .host = url_part(url.get(), CURLUPART_HOST),
                           .port = url_part(url.get(), CURLUPART_PORT, CURLU_DEFAULT_PORT)};
    if (target.origin() != settings.server.origin()) {
        // The credentials would be sent to another host, and the response would come from it.
        return fail(Errc::PermissionDenied, refused + " to another host, " + target.origin());
    }
    if (request_.method != "GET" && head_.head().status != 307 && head_.head().status != 308) {
        return fail(Errc::InvalidArgument, refused + " is not followed for a request other than GET");
    }
    if (++redirects_ > settings.redirects_max) {
        return fail(Errc::Exhausted,
                    refused + ": more than " + std::to_string(settings.redirects_max) + " redirects");
    }
    path_ = url_part(url.get(), CURLUPART_PATH);
    if (const std::string query = url_part(url.get(), CURLUPART_QUERY); !query.empty()) {
        path_ += "?" + query;
    }
    head_ = {};
    set_url(settings);
    return true;
}

std::optional<TransportError> CurlTransfer::outcome(CURLcode code, const TransferSettings& settings) const {
    if (code == CURLE_OK && head_.is_complete()) {
        return std::nullopt;
    }
    if (is_too_large_) {
        return TransportError{TransportError::Kind::TooLarge,
                              subject(settings) + "the response has more than " +
                                  std::to_string(settings.body_bytes_max) + " bytes"};
    }
    const std::string_view said = error_[0] != '\0' ? error_ : curl_easy_strerror(code);
    if (code == CURLE_OPERATION_TIMEDOUT) {
        // Either of the two time limits; curl does not report which one. After the connection is set up, only
        // the request's own limit remains.
        curl_off_t connected_after_us = 0;
        curl_easy_getinfo(handle_.get(), CURLINFO_PRETRANSFER_TIME_T, &connected_after_us);
        const bool whole = request_.timeout.count() > 0 &&
                           (connected_after_us > 0 || request_.timeout <= settings.connect_timeout);
        return TransportError{whole ? TransportError::Kind::Timeout : TransportError::Kind::Connect,
                              subject(settings) + std::string(said)};
    }
    return TransportError{error_kind(code, said),
                          subject(settings) + std::string(code == CURLE_OK ? "no response" : said)};
}

std::string CurlTransfer::subject(const TransferSettings& settings) const {
    return settings.server.origin() + ": " + request_.method + " " +
           request_.target.substr(0, request_.target.find('?')) + ": ";
}

long CurlTransfer::local_port() const {
    long port = 0;
    curl_easy_getinfo(handle_.get(), CURLINFO_LOCAL_PORT, &port);
    return port;
}

bool CurlTransfer::is_http2() const {
    long version = CURL_HTTP_VERSION_NONE;
    curl_easy_getinfo(handle_.get(), CURLINFO_HTTP_VERSION, &version);
    return version == CURL_HTTP_VERSION_2_0;
}

// libcurl's rule for both: returning a number other than the given one ends the transfer with
// CURLE_WRITE_ERROR.
size_t CurlTransfer::on_header(char* data, size_t size, size_t count, void* self) {
    auto& transfer = *static_cast<CurlTransfer*>(self);
    transfer.last_byte_at_ = std::chrono::steady_clock::now();
    const bool is_whole = transfer.head_.read({data, size * count});
    if (is_whole) {
        transfer.settings_->head_seen(transfer.settings_->owner, transfer);
    }
    if (is_whole && !transfer.is_redirect() && transfer.handler_ != nullptr) {
        curl_off_t retry_after = 0;
        curl_easy_getinfo(transfer.handle_.get(), CURLINFO_RETRY_AFTER, &retry_after);
        ResponseHead head{.status = transfer.head_.head().status,
                          .content_type = transfer.head_.head().content_type};
        if (retry_after > 0) {
            head.retry_after = std::chrono::seconds(retry_after);
        }
        ++transfer.call_backs_;
        transfer.handler_->on_head(head);
    }
    return transfer.handler_ == nullptr ? 0 : size * count;
}

size_t CurlTransfer::on_body(char* data, size_t size, size_t count, void* self) {
    auto& transfer = *static_cast<CurlTransfer*>(self);
    const size_t bytes = size * count;
    transfer.last_byte_at_ = std::chrono::steady_clock::now();
    transfer.body_bytes_ += bytes;
    if (!transfer.request_.watch && transfer.body_bytes_ > transfer.settings_->body_bytes_max) {
        transfer.is_too_large_ = true;
        return 0;
    }
    if (!transfer.is_redirect() && transfer.handler_ != nullptr) {
        ++transfer.call_backs_;
        transfer.handler_->on_body({data, bytes});
    }
    return transfer.handler_ == nullptr ? 0 : bytes;
}

}  // namespace penstock::kube
