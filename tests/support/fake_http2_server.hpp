// An HTTP/2 server over TLS (ALPN "h2") in the test's own process, for what HTTP/1.1 cannot show: several streams on one connection, and a
// peer that falls silent below the streams. nghttp2 speaks the protocol; a handler answers.
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
        bool stays_open = false;                                   // push() goes on with it
    };
    using Handler = std::function<Answer(const RecordedRequest&)>;

    FakeHttp2Server(Handler handler, const ServerTls& tls);
    ~FakeHttp2Server();
    FakeHttp2Server(const FakeHttp2Server&) = delete;
    FakeHttp2Server& operator=(const FakeHttp2Server&) = delete;

    std::string url() const { return "https://127.0.0.1:" + std::to_string(port_); }
    // To every open stream of that path.
    void push(const std::string& path, const std::string& bytes);
    // Ends them well.
    void finish(const std::string& path);
    // The connections that there are now neither read nor write any more, though the kernel goes on acknowledging: a hung peer.
    void freeze();
    // Whether the other side has closed each frozen connection. The kernel notes that although nothing is read.
    bool are_frozen_connections_closed() const;
    // The connections that there are now take no new streams (GOAWAY).
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
