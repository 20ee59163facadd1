// SPDX-License-Identifier: Apache-2.0
// An HTTP/2 server over TLS (ALPN "h2") in the test process, for cases that HTTP/1.1 does not have: several
// streams on one connection, and a peer that hangs below the streams. nghttp2 implements the protocol; a
// handler answers.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/fake_api_server.hpp"
#include "tests/support/tls_server_context.hpp"

namespace penstock::test {

class FakeHttp2Server {
 public:
    struct Answer {
        int status = 200;
        std::string body;
        std::vector<std::pair<std::string, std::string>> headers;  // names in lower case
        bool stays_open = false;                                   // push() continues the answer
    };
    using Handler = std::function<Answer(const RecordedRequest&)>;

    FakeHttp2Server(Handler handler, const ServerTls& tls);
    ~FakeHttp2Server();
    FakeHttp2Server(const FakeHttp2Server&) = delete;
    FakeHttp2Server& operator=(const FakeHttp2Server&) = delete;

    std::string url() const { return "https://127.0.0.1:" + std::to_string(port_); }
    // Sends to every open stream of the path.
    void push(const std::string& path, const std::string& bytes);
    // Ends the streams regularly.
    void finish(const std::string& path);
    // Current connections no longer read or write, while the kernel continues to acknowledge: a hung peer.
    void freeze();
    // True if the other side has closed each frozen connection. The kernel registers that although nothing is
    // read.
    bool are_frozen_connections_closed() const;
    // Current connections accept no new streams (GOAWAY).
    void go_away();

    std::vector<RecordedRequest> requests() const;
    int connection_count() const;
    size_t open_streams(const std::string& path) const;

 private:
    class Session;
    void accept_loop();
    std::list<std::shared_ptr<Session>> sessions() const;

    TlsServerContext context_;
    Handler handler_;
    int listener_ = -1;
    uint16_t port_ = 0;
    mutable std::mutex mutex_;
    std::vector<RecordedRequest> requests_;
    std::list<std::shared_ptr<Session>> sessions_;
    std::list<std::thread> threads_;
    std::thread acceptor_;
};

}  // namespace penstock::test
