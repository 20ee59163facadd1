// SPDX-License-Identifier: Apache-2.0
// Serves a few pages over HTTP, for probes and scrapers: a path, and a function that makes its page for each
// request. No TLS, no keep-alive, no request bodies.
//
// One thread, the loop's, serves all connections of all its servers, so neither idle nor slow clients delay
// others. Their resources are limited: the number of connections (admission.hpp), the size of a request, and
// the time for request, response and close. HTTP is parsed by Boost.Beast
// (docs/adr/0031-http-server-with-an-event-loop.md).
#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "control/http/admission.hpp"
#include "control/http/answer.hpp"
#include "dataplane/base/result.hpp"

namespace penstock::http {

// Does not throw and does not wait. Called on the loop's thread; a heavy route is called on a thread of its
// server, one call at a time.
struct Route {
    template <typename Make>
        requires(!std::same_as<std::remove_cvref_t<Make>, Route> && std::is_invocable_r_v<Response, Make&>)
    Route(Make function) : make(std::move(function)) {}

    std::function<Response()> make;
    // The page takes milliseconds to make. It is made on another thread, once for all requests waiting for
    // it, and compressed for clients that accept gzip.
    bool is_heavy = false;
};
[[nodiscard]] inline Route heavy(Route route) {
    route.is_heavy = true;
    return route;
}

using Routes = std::map<std::string, Route, std::less<>>;  // by exact path: "/healthz"
inline constexpr const char* kAnyPath = "*";               // the route for all paths without one

inline constexpr size_t kRequestBytesMax = 8'192;
// Time from accept to the end of the request's headers. Probes send their request with the handshake's last
// packet; one retransmission fits.
inline constexpr std::chrono::milliseconds kRequestTimeout{1'000};
// Time until the kernel has accepted the response. 10 s is Prometheus's default limit of a scrape.
inline constexpr std::chrono::milliseconds kAnswerTimeout{10'000};
// Time until the client has closed its side. Closing earlier, with unread data, would send a RST, which can
// overtake the response.
inline constexpr std::chrono::milliseconds kCloseTimeout{500};
// Maximum number of clients that are receiving heavy pages. One more closes the oldest of them: each may hold
// megabytes.
inline constexpr size_t kHeavyAnswersMax = 32;

// The serving thread. Servers that share a loop share its limits.
class Loop {
 public:
    explicit Loop(AdmissionLimits limits = {});
    ~Loop();  // after its servers
    Loop(const Loop&) = delete;
    Loop& operator=(const Loop&) = delete;

    struct Impl;

 private:
    friend class Server;
    std::unique_ptr<Impl> impl_;
};

struct ServerOptions {
    // ADDRESS:PORT, an IPv6 address in brackets; port 0: any free one. At least one.
    std::vector<std::string> addresses;
    Routes routes;
    // Listens also if the host does not have the address yet, such as an IPv6 address during duplicate
    // address detection.
    bool addresses_may_be_absent = false;
};

class Server {
 public:
    // Listens on all addresses or on none. Unavailable names the address and the reason.
    static Result<std::unique_ptr<Server>> start(ServerOptions options, std::shared_ptr<Loop> loop);
    // With its own loop.
    static Result<std::unique_ptr<Server>> start(ServerOptions options) {
        return start(std::move(options), std::make_shared<Loop>());
    }
    static Result<std::unique_ptr<Server>> start(const std::string& address, Routes routes) {
        return start(ServerOptions{.addresses = {address}, .routes = std::move(routes)});
    }
    // Closes the listeners and the connections. Waits for a page that is being made, never for a client. Must
    // not be called on the loop's thread.
    ~Server();
    Server(const Server&) = delete;
    Server& operator=(const Server&) = delete;

    // Port of the first address.
    [[nodiscard]] uint16_t port() const;

    struct Impl;

 private:
    Server(std::shared_ptr<Loop> loop, std::shared_ptr<Impl> impl);
    const std::shared_ptr<Loop> loop_;
    const std::shared_ptr<Impl> impl_;
};

// InvalidArgument unless `address` has the form that start() accepts.
[[nodiscard]] Status check_address(const std::string& address);

}  // namespace penstock::http
