// SPDX-License-Identifier: Apache-2.0
// One request as libcurl executes it: its options, its callbacks, and its result. curl_transport.cpp starts
// and ends transfers; this unit covers the steps between.
#pragma once

#include <curl/curl.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "control/kube/client/client_config.hpp"
#include "control/kube/client/http_head.hpp"
#include "control/kube/client/tls_material.hpp"
#include "control/kube/transport.hpp"
#include "dataplane/base/result.hpp"

namespace penstock::kube {

struct CurlFree {
    void operator()(CURL* handle) const { curl_easy_cleanup(handle); }
    void operator()(curl_slist* list) const { curl_slist_free_all(list); }
    void operator()(CURLU* url) const { curl_url_cleanup(url); }
};

// A server URL, parsed once.
struct ServerUrl {
    std::string scheme;
    std::string host;  // an IPv6 address in brackets
    std::string port;
    std::string prefix;  // "" or "/clusters/a": prefix of every target
    std::string origin() const { return scheme + "://" + host + ":" + port; }
    static Result<ServerUrl> parse(const std::string& url);
};

class CurlTransfer;

// Settings shared by all transfers of a transport; outlives them.
struct TransferSettings {
    ClientConfig config;
    ServerUrl server;
    std::string user_agent;
    uint64_t body_bytes_max = 0;
    std::chrono::milliseconds connect_timeout{0};
    std::chrono::milliseconds tcp_keepalive{0};
    uint32_t redirects_max = 0;
    // The transport opens and closes the sockets, so that it can track them and no exec plugin inherits one.
    curl_opensocket_callback open_socket = nullptr;
    curl_closesocket_callback close_socket = nullptr;
    // Called for the head of each response, also of redirects, before the handler.
    void (*head_seen)(void* owner, const CurlTransfer& transfer) = nullptr;
    void* owner = nullptr;
};

class CurlTransfer {
 public:
    using Time = std::chrono::steady_clock::time_point;

    CurlTransfer(Transport::RequestId id, Request request, ResponseHandler& handler)
        : id_(id), request_(std::move(request)), handler_(&handler) {}
    CurlTransfer(const CurlTransfer&) = delete;
    CurlTransfer& operator=(const CurlTransfer&) = delete;

    // Returns a handle that is ready for curl_multi_add_handle, or null if memory allocation failed.
    CURL* prepare(const TransferSettings& settings, const std::shared_ptr<const TlsMaterial>& tls,
                  const Secret& token, Time now);
    // No callbacks from now on; the transfer ends at the next received byte.
    void forget() { handler_ = nullptr; }
    // Prepares the same handle for another request, to another path on the same server. An error gives the
    // reason why the redirect cannot be followed. False: no redirect.
    Result<bool> follow_redirect(const TransferSettings& settings);
    // Result of the transfer; nullopt on success. Call before the handle is removed from the multi handle.
    std::optional<TransportError> outcome(CURLcode code, const TransferSettings& settings) const;
    // "https://api:6443: GET /api/v1/services: ", without the query, which may be long.
    std::string subject(const TransferSettings& settings) const;

    Transport::RequestId id() const { return id_; }
    CURL* handle() const { return handle_.get(); }
    ResponseHandler* handler() const { return handler_; }
    const Request& request() const { return request_; }
    Time last_byte_at() const { return last_byte_at_; }
    long local_port() const;
    // Valid once the response has begun.
    bool is_http2() const;
    uint64_t call_backs() const { return call_backs_; }
    const HttpHead& head() const { return head_.head(); }

 private:
    static size_t on_header(char* data, size_t size, size_t count, void* self);
    static size_t on_body(char* data, size_t size, size_t count, void* self);
    void set_tls(const TransferSettings& settings, const TlsMaterial& tls);
    void set_method();
    void set_headers(const TransferSettings& settings, const Secret& token);
    void set_url(const TransferSettings& settings);
    bool is_redirect() const;

    Transport::RequestId id_;
    Request request_;
    ResponseHandler* handler_;
    std::unique_ptr<CURL, CurlFree> handle_;
    std::unique_ptr<curl_slist, CurlFree> headers_;
    std::unique_ptr<curl_slist, CurlFree> connect_to_;
    const TransferSettings* settings_ = nullptr;
    std::string path_;  // with the path prefix of the server; the redirect target if a redirect was followed
    HttpHeadReader head_;
    uint64_t body_bytes_ = 0;
    bool is_too_large_ = false;
    uint32_t redirects_ = 0;
    uint64_t call_backs_ = 0;
    Time last_byte_at_;
    char error_[CURL_ERROR_SIZE] = {};
};

}  // namespace penstock::kube
