// SPDX-License-Identifier: Apache-2.0
// Byte transport to the API server. Interface between the machines that decide on requests (reflectors, the
// event recorder) and the network. The machines write requests and read bytes; TLS, connections, credentials
// and HTTP versions are hidden from them. curl_transport.hpp is the implementation; tests pass their own.
//
// Everything here runs on one thread, the source thread: requests are started there, and callbacks arrive
// there.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "dataplane/base/ids.hpp"

namespace penstock::kube {

// Credentials, `Accept: application/json` and User-Agent are added by the transport and are not part of a
// request.
struct Request {
    std::string method = "GET";
    std::string target;  // path and query, percent-encoded: "/api/v1/services?limit=500"
    std::string body;
    std::string content_type;  // of `body`; "" without one
    // Lists compress tenfold. Watches request identity: a compressor would delay events until its block is
    // full (APISYNC-019).
    bool accept_gzip = false;
    std::chrono::milliseconds timeout{0};  // from sending to the last byte of the response; 0: none
    // A stream that may be silent and open for a long time: it has no timeout, but its connection is
    // monitored for being half-open (APISYNC-015).
    bool watch = false;
};

struct ResponseHead {
    int status = 0;
    std::optional<std::chrono::seconds>
        retry_after;  // a date in Retry-After is converted to the remaining time
    std::string content_type;
};

// The response is missing or incomplete. A status of 400 and above is a response, not an error here.
struct TransportError {
    enum class Kind : uint8_t {
        Connect,      // DNS lookup failed, no route, refused
        Tls,          // handshake failed: chain, name, version, client certificate
        Timeout,      // Request::timeout passed
        Broken,       // closed or reset during the response, half-open, not HTTP
        Redirect,     // to another host, or in a loop
        TooLarge,     // the decompressed body exceeds the transport's limit
        Credentials,  // none available: unreadable file, exec plugin failed
    };
    Kind kind = Kind::Broken;
    std::string what;  // names server and cause; never contains a secret (AUTH-009)
};

// Receiver of a response. Callbacks for one request come in this order: on_head at most once, on_body any
// number of times, on_end once and last. Each of them may start and cancel requests, including the current
// one.
class ResponseHandler {
 public:
    virtual ~ResponseHandler() = default;
    // The head of the final response: informational responses and followed redirects are not reported.
    virtual void on_head(const ResponseHead& head) = 0;
    // The next bytes of the body, already decompressed, split anywhere. The view lives for this call.
    virtual void on_body(std::string_view bytes) = 0;
    // nullopt: the response is complete.
    virtual void on_end(const std::optional<TransportError>& error) = 0;
};

class Transport {
 public:
    using RequestId = Id<struct RequestTag, uint64_t>;  // never reused

    virtual ~Transport() = default;
    // Runs no callback before it returns; every failure arrives as on_end. `handler` lives until on_end or
    // cancel().
    virtual RequestId start(Request request, ResponseHandler& handler) = 0;
    // No callback for the request after this returns. Ended and unknown ids are permitted.
    virtual void cancel(RequestId id) = 0;
    // Call after a 401: credentials are read again at once, and the next request that is started uses the new
    // ones (APISYNC-013, AUTH-004).
    virtual void credentials_rejected() = 0;
    // Returns `text` without the credentials of the requests: a server, or a proxy, may repeat them in its
    // response (AUTH-009).
    [[nodiscard]] virtual std::string without_secrets(std::string text) const = 0;
};

}  // namespace penstock::kube
