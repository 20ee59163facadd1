// A few pages over HTTP, for probes and scrapers: a path, and a function that makes its page when it is asked for. No TLS, no keep-alive,
// no request bodies; few threads and small requests, so that whoever reaches the port cannot take more than that from the process.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "dataplane/base/result.hpp"

namespace penstock::http {

struct Response {
    int status = 200;
    std::string body;
    std::string content_type = "text/plain; charset=utf-8";
    std::vector<std::pair<std::string, std::string>> headers = {};  // further ones
};

// Called on the server's threads, several at once, and does not throw.
using Route = std::function<Response()>;
using Routes = std::map<std::string, Route, std::less<>>;  // by exact path: "/healthz"
inline constexpr const char* kAnyPath = "*";               // the route of all that have none

// Requests that are answered at once; the rest wait in the kernel's queue.
inline constexpr int kThreads = 4;
inline constexpr int kRequestBytesMax = 8'192;
inline constexpr int kRequestTimeoutMs = 3'000;

// Whether the library was built with IPv6. Debian's was not: it listens on no IPv6 address, and refuses a list that has one.
[[nodiscard]] bool serves_ipv6() noexcept;

class Server {
 public:
    // ADDRESS:PORT, an IPv6 address in brackets; port 0: any free one. Unavailable names the address.
    static Result<std::unique_ptr<Server>> start(const std::string& address, Routes routes) {
        return start(std::vector<std::string>{address}, std::move(routes));
    }
    // The same pages on all of these addresses, at least one, or on none.
    static Result<std::unique_ptr<Server>> start(const std::vector<std::string>& addresses, Routes routes, int threads = kThreads);
    // Waits for requests under way.
    ~Server();
    Server(const Server&) = delete;
    Server& operator=(const Server&) = delete;

    // Of the first address.
    [[nodiscard]] uint16_t port() const;

 private:
    struct Impl;
    explicit Server(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

// InvalidArgument unless `address` has the form that start() takes.
[[nodiscard]] Status check_address(const std::string& address);

}  // namespace penstock::http
