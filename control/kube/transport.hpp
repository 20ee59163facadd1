// Bytes to and from the API server. This is the door between the machines that decide what to ask (reflectors, the event recorder) and the
// network: they write requests and read bytes, and know neither TLS, connections, credentials nor HTTP versions. curl_transport.hpp is the
// real one; a test hands a machine its own.
//
// Everything here happens on one thread, the source thread: requests are started there, and call-backs arrive there.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "dataplane/base/ids.hpp"

namespace penstock::kube {

// Credentials, `Accept: application/json` and User-Agent are the transport's own part and stand in no request.
struct Request {
    std::string method = "GET";
    std::string target;  // path and query, percent-encoded: "/api/v1/services?limit=500"
    std::string body;
    std::string content_type;  // of `body`; "" where there is none
    // Lists compress tenfold. Watches ask for identity: a compressor would hold events back until its block is full (APISYNC-019).
    bool accept_gzip = false;
    std::chrono::milliseconds timeout{0};  // from when it is sent to the answer's last byte; 0: none
    // A stream that may be silent for long and end much later: it has no timeout, but its connection is watched for being half-open
    // (APISYNC-015).
    bool watch = false;
};

struct ResponseHead {
    int status = 0;
    std::optional<std::chrono::seconds>
        retry_after;  // a date in Retry-After arrives as what is left until then
    std::string content_type;
};

// The request did not get its whole answer. A status of 400 and above is an answer, and no error here.
struct TransportError {
    enum class Kind : uint8_t {
        Connect,      // no name, no route, refused
        Tls,          // the handshake failed: chain, name, version, client certificate
        Timeout,      // Request::timeout passed
        Broken,       // closed or reset in mid-answer, half-open, not HTTP
        Redirect,     // to another host, or in circles
        TooLarge,     // the body, decompressed, passes the transport's bound
        Credentials,  // there are none to send: unreadable file, exec plugin failed
    };
    Kind kind = Kind::Broken;
    std::string what;  // names server and cause; never holds a secret (AUTH-009)
};

// Who asked. Call-backs for one request come in this order: on_head at most once, on_body any number of times, on_end once and last. Each
// of them may start and cancel requests, this one too.
class ResponseHandler {
 public:
    virtual ~ResponseHandler() = default;
    // The final answer's head: informational ones and followed redirects are not shown.
    virtual void on_head(const ResponseHead& head) = 0;
    // The next bytes of the body, already decompressed, cut anywhere. The view lives for this call.
    virtual void on_body(std::string_view bytes) = 0;
    // nullopt: the answer is complete.
    virtual void on_end(const std::optional<TransportError>& error) = 0;
};

class Transport {
 public:
    using RequestId = Id<struct RequestTag, uint64_t>;  // never used twice

    virtual ~Transport() = default;
    // Never calls back from inside; every failure arrives as on_end. `handler` lives until on_end or cancel().
    virtual RequestId start(Request request, ResponseHandler& handler) = 0;
    // No call-back for it after this returns. An id that has ended, or never was, is fine.
    virtual void cancel(RequestId id) = 0;
    // An answer was 401: credentials are read again at once, and the next request that is started has the new ones (APISYNC-013, AUTH-004).
    virtual void credentials_rejected() = 0;
    // The same without the credentials that requests are made with: a server, or a proxy, may repeat them in what it answers (AUTH-009).
    [[nodiscard]] virtual std::string without_secrets(std::string text) const = 0;
};

}  // namespace penstock::kube
