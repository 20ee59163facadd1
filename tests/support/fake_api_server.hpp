// SPDX-License-Identifier: Apache-2.0
// An HTTP/1.1 server in the test process on 127.0.0.1, with or without TLS. A script answers each request. It
// can misbehave as no real server can be made to: send garbage, send one byte at a time, stall, or close in
// the middle of an answer. (fake_cluster.hpp: a well-behaved script; fake_http2_server.hpp: HTTP/2.)
//
// One thread per connection. A script runs on its connection's thread and may wait for any time: stopping the
// server ends every wait.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "tests/support/certificates.hpp"

namespace penstock::test {

struct RecordedRequest {
    std::string method;
    std::string target;  // path and query as sent
    std::map<std::string, std::string>
        headers;  // names in lower case; values of equal names are joined by ","
    std::string body;
    std::chrono::steady_clock::time_point time;
    int connection = 0;       // counts from 1
    std::string client_name;  // common name of the client's certificate, "" if it sent none

    std::string path() const { return target.substr(0, target.find('?')); }
    // Percent-decoded; "" if missing.
    std::string query(const std::string& name) const;
    std::string header(const std::string& name) const;
};

// The interface of one connection for a script.
class Connection {
 public:
    virtual ~Connection() = default;
    // False after the peer has disconnected or the server stops; later data is discarded.
    virtual bool send(std::string_view bytes) = 0;
    // Waits; false if the connection or the server ends meanwhile.
    virtual bool wait(std::chrono::milliseconds time) = 0;
    // Waits until the peer closes, or the server stops.
    virtual void wait_for_close() = 0;
    // Closes at once; with TLS without a close alert, as a crash does.
    virtual void cut() = 0;

    bool send_slowly(std::string_view bytes, size_t piece, std::chrono::milliseconds pause);
    // Sends a whole answer with Content-Length. `headers`: lines without line breaks.
    bool respond(int status, std::string_view body, const std::vector<std::string>& headers = {});
    bool start_chunks(int status, const std::vector<std::string>& headers = {});
    bool chunk(std::string_view bytes);
    bool end_chunks();
};

struct ServerTls {
    Issued certificate;
    std::string client_ca;  // PEM; "": requests no client certificate
    bool has_alpn = true;   // false: ignores ALPN of the client
    int version_max = 0;    // as for SSL_CTX_set_max_proto_version; 0: the newest
};

class FakeApiServer {
 public:
    using Handler = std::function<void(const RecordedRequest&, Connection&)>;

    explicit FakeApiServer(Handler handler, std::optional<ServerTls> tls = std::nullopt);
    ~FakeApiServer();
    FakeApiServer(const FakeApiServer&) = delete;
    FakeApiServer& operator=(const FakeApiServer&) = delete;

    std::string url() const;
    uint16_t port() const { return port_; }
    // Used for new requests.
    void set_handler(Handler handler);
    // Used for new connections.
    void set_tls(ServerTls tls);
    // Goes offline: connections are cut and new ones refused; the port stays reserved.
    void go_away();
    void come_back();
    void cut_connections();

    std::vector<RecordedRequest> requests() const;
    size_t request_count() const;
    // Number of connections so far, and the protocols offered by the last TLS client.
    int connection_count() const;
    std::string last_server_name() const;

 private:
    class Session;
    struct TlsContext;
    void accept_loop(int listener);
    void serve(Session& session);
    std::shared_ptr<TlsContext> tls_context() const;

    uint16_t port_ = 0;
    int holder_ = -1;  // bound but never listening: reserves the port while offline
    int listener_ = -1;
    std::thread acceptor_;
    mutable std::mutex mutex_;
    Handler handler_;
    std::shared_ptr<TlsContext> tls_;
    std::list<std::shared_ptr<Session>> sessions_;
    std::list<std::thread> threads_;
    std::vector<RecordedRequest> requests_;
    int connections_ = 0;
    std::string server_name_;
};

}  // namespace penstock::test
