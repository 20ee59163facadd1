// SPDX-License-Identifier: Apache-2.0
#include "tests/support/fake_api_server.hpp"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cctype>
#include <utility>

#include "dataplane/base/check.hpp"
#include "tests/support/tls_server_context.hpp"

namespace penstock::test {
namespace {

using std::chrono::milliseconds;

int bound_socket(uint16_t port) {
    const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int on = 1;
    ::setsockopt(socket, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on));
    ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    sockaddr_in address{
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    PENSTOCK_CHECK(socket >= 0 &&
                   ::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0);
    return socket;
}

uint16_t port_of(int socket) {
    sockaddr_in address{};
    socklen_t length = sizeof(address);
    PENSTOCK_CHECK(::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &length) == 0);
    return ntohs(address.sin_port);
}

std::string lower(std::string text) {
    std::ranges::transform(text, text.begin(),
                           [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return text;
}

int hex_digit(char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

std::string percent_decoded(std::string_view text) {
    std::string decoded;
    for (size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '%' && i + 2 < text.size() && hex_digit(text[i + 1]) >= 0 &&
            hex_digit(text[i + 2]) >= 0) {
            decoded.push_back(static_cast<char>(hex_digit(text[i + 1]) * 16 + hex_digit(text[i + 2])));
            i += 2;
        } else {
            decoded.push_back(text[i] == '+' ? ' ' : text[i]);
        }
    }
    return decoded;
}

std::string head_of(int status, const std::vector<std::string>& headers) {
    std::string head = "HTTP/1.1 " + std::to_string(status) + " Scripted\r\n";
    const auto names_type = [](const std::string& header) {
        return lower(header).starts_with("content-type:");
    };
    if (std::ranges::none_of(headers, names_type)) {
        head += "Content-Type: application/json\r\n";
    }
    for (const std::string& header : headers) {
        head += header + "\r\n";
    }
    return head;
}

}  // namespace

std::string RecordedRequest::query(const std::string& name) const {
    const size_t mark = target.find('?');
    std::string_view rest =
        mark == std::string::npos ? std::string_view() : std::string_view(target).substr(mark + 1);
    while (!rest.empty()) {
        const std::string_view pair = rest.substr(0, rest.find('&'));
        rest.remove_prefix(std::min(rest.size(), pair.size() + 1));
        const size_t equals = pair.find('=');
        if (percent_decoded(pair.substr(0, equals)) == name) {
            return equals == std::string_view::npos ? "" : percent_decoded(pair.substr(equals + 1));
        }
    }
    return {};
}

std::string RecordedRequest::header(const std::string& name) const {
    const auto found = headers.find(name);
    return found == headers.end() ? "" : found->second;
}

bool Connection::send_slowly(std::string_view bytes, size_t piece, milliseconds pause) {
    for (size_t at = 0; at < bytes.size(); at += piece) {
        if (!send(bytes.substr(at, piece)) || (pause.count() > 0 && !wait(pause))) {
            return false;
        }
    }
    return true;
}

bool Connection::respond(int status, std::string_view body, const std::vector<std::string>& headers) {
    return send(head_of(status, headers) + "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
                std::string(body));
}

bool Connection::start_chunks(int status, const std::vector<std::string>& headers) {
    return send(head_of(status, headers) + "Transfer-Encoding: chunked\r\n\r\n");
}

bool Connection::chunk(std::string_view bytes) {
    std::array<char, 32> size;
    std::snprintf(size.data(), size.size(), "%zx\r\n", bytes.size());
    return bytes.empty() || send(size.data() + std::string(bytes) + "\r\n");
}

bool Connection::end_chunks() {
    return send("0\r\n\r\n");
}

struct FakeApiServer::TlsContext {
    TlsServerContext context;
};

// One connection: its socket, and TLS on it if enabled.
class FakeApiServer::Session final : public Connection {
 public:
    Session(int socket, int number, std::shared_ptr<TlsContext> tls)
        : socket_(socket), number_(number), tls_(std::move(tls)) {}
    ~Session() override {
        SSL_free(ssl_);
        ::close(socket_);
    }

    bool handshake() {
        if (!tls_) {
            return true;
        }
        ssl_ = SSL_new(tls_->context.get());
        SSL_set_fd(ssl_, socket_);
        return SSL_accept(ssl_) == 1;
    }
    std::string server_name() const {
        const char* name = ssl_ == nullptr ? nullptr : SSL_get_servername(ssl_, TLSEXT_NAMETYPE_host_name);
        return name == nullptr ? "" : name;
    }
    int number() const { return number_; }
    std::string client_name() const { return ssl_ == nullptr ? "" : peer_common_name(ssl_); }

    bool send(std::string_view bytes) override {
        while (!bytes.empty() && !is_cut_) {
            const ssize_t sent =
                ssl_ != nullptr
                    ? SSL_write(ssl_, bytes.data(), static_cast<int>(std::min<size_t>(bytes.size(), 1 << 20)))
                    : ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
            if (sent <= 0) {
                return false;
            }
            bytes.remove_prefix(static_cast<size_t>(sent));
        }
        return !is_cut_;
    }
    // Returns at least one byte; "" at the end.
    std::string receive() {
        std::array<char, 16384> part;
        const ssize_t got = ssl_ != nullptr ? SSL_read(ssl_, part.data(), static_cast<int>(part.size()))
                                            : ::recv(socket_, part.data(), part.size(), 0);
        return got <= 0 ? std::string() : std::string(part.data(), static_cast<size_t>(got));
    }
    bool wait(milliseconds time) override { return !peer_left(time); }
    void wait_for_close() override {
        while (!peer_left(milliseconds(1000))) {
        }
    }
    // From any thread: ends pending reads, writes and waits.
    void cut() override {
        is_cut_ = true;
        ::shutdown(socket_, SHUT_RDWR);
    }
    void end(bool is_open) {
        if (ssl_ != nullptr && !is_cut_ && is_open) {
            SSL_shutdown(ssl_);
        }
        if (!is_open) {
            // Closing with unread data resets the connection, and the TLS alert with the reason would be
            // lost.
            ::shutdown(socket_, SHUT_WR);
            std::array<char, 4096> unread;
            while (!is_cut_ && ::recv(socket_, unread.data(), unread.size(), 0) > 0) {
            }
        }
        cut();
    }

 private:
    // A client sends nothing after its request until it has the answer, so a readable socket means that the
    // client has closed it.
    bool peer_left(milliseconds time) {
        pollfd wanted{.fd = socket_, .events = POLLRDHUP};
        ::poll(&wanted, 1, static_cast<int>(time.count()));
        return is_cut_ || (wanted.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
    }

    int socket_;
    int number_;
    std::shared_ptr<TlsContext> tls_;
    SSL* ssl_ = nullptr;
    std::atomic<bool> is_cut_ = false;
};

namespace {

// Extracts the next request from the received bytes; nullopt at the end of the connection, or for an invalid
// request.
template <typename Session>
std::optional<RecordedRequest> next_request(Session& session, std::string& received) {
    size_t end = 0;
    while ((end = received.find("\r\n\r\n")) == std::string::npos) {
        const std::string part = session.receive();
        if (part.empty()) {
            return std::nullopt;
        }
        received += part;
    }
    RecordedRequest request{.time = std::chrono::steady_clock::now(),
                            .connection = session.number(),
                            .client_name = session.client_name()};
    const std::string head = received.substr(0, end + 2);
    received.erase(0, end + 4);
    size_t at = head.find("\r\n");
    const std::string first = head.substr(0, at);
    const size_t space = first.find(' ');
    request.method = first.substr(0, space);
    request.target = first.substr(space + 1, first.rfind(' ') - space - 1);
    for (at += 2; at < head.size();) {
        const size_t line_end = head.find("\r\n", at);
        const std::string line = head.substr(at, line_end - at);
        at = line_end + 2;
        const size_t colon = line.find(':');
        const size_t value =
            colon == std::string::npos ? std::string::npos : line.find_first_not_of(' ', colon + 1);
        std::string& known = request.headers[lower(line.substr(0, colon))];
        known += (known.empty() ? "" : ",") + (value == std::string::npos ? "" : line.substr(value));
    }
    const std::string length = request.header("content-length");
    const size_t wanted = length.empty() ? 0 : std::stoul(length);
    while (received.size() < wanted) {
        const std::string part = session.receive();
        if (part.empty()) {
            return std::nullopt;
        }
        received += part;
    }
    request.body = received.substr(0, wanted);
    received.erase(0, wanted);
    return request;
}

}  // namespace

FakeApiServer::FakeApiServer(Handler handler, std::optional<ServerTls> tls) : handler_(std::move(handler)) {
    ::signal(SIGPIPE, SIG_IGN);  // OpenSSL writes without MSG_NOSIGNAL
    if (tls) {
        set_tls(*tls);
    }
    holder_ = bound_socket(0);
    port_ = port_of(holder_);
    come_back();
}

FakeApiServer::~FakeApiServer() {
    go_away();
    for (std::thread& thread : threads_) {
        thread.join();
    }
    ::close(holder_);
}

void FakeApiServer::come_back() {
    listener_ = bound_socket(port_);
    PENSTOCK_CHECK(::listen(listener_, 64) == 0);
    acceptor_ = std::thread([this, listener = listener_] { accept_loop(listener); });
}

void FakeApiServer::go_away() {
    if (listener_ < 0) {
        return;
    }
    ::shutdown(listener_, SHUT_RDWR);  // makes accept() return
    acceptor_.join();
    ::close(std::exchange(listener_, -1));
    cut_connections();
}

void FakeApiServer::cut_connections() {
    const std::lock_guard lock(mutex_);
    for (const auto& session : sessions_) {
        session->cut();
    }
}

std::string FakeApiServer::url() const {
    return (tls_context() ? "https://127.0.0.1:" : "http://127.0.0.1:") + std::to_string(port_);
}

void FakeApiServer::set_handler(Handler handler) {
    const std::lock_guard lock(mutex_);
    handler_ = std::move(handler);
}

void FakeApiServer::set_tls(ServerTls tls) {
    auto context = std::make_shared<TlsContext>(TlsContext{TlsServerContext(
        tls, tls.has_alpn ? std::vector<std::string>{"http/1.1"} : std::vector<std::string>{})});
    const std::lock_guard lock(mutex_);
    tls_ = std::move(context);
}

std::shared_ptr<FakeApiServer::TlsContext> FakeApiServer::tls_context() const {
    const std::lock_guard lock(mutex_);
    return tls_;
}

std::vector<RecordedRequest> FakeApiServer::requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
}

size_t FakeApiServer::request_count() const {
    const std::lock_guard lock(mutex_);
    return requests_.size();
}

int FakeApiServer::connection_count() const {
    const std::lock_guard lock(mutex_);
    return connections_;
}

std::string FakeApiServer::last_server_name() const {
    const std::lock_guard lock(mutex_);
    return server_name_;
}

void FakeApiServer::accept_loop(int listener) {
    while (true) {
        const int socket = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
        if (socket < 0) {
            return;
        }
        const int on = 1;
        ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));  // each piece is sent at once
        const std::lock_guard lock(mutex_);
        const auto session = std::make_shared<Session>(socket, ++connections_, tls_);
        sessions_.push_back(session);
        threads_.emplace_back([this, session] {
            serve(*session);
            const std::lock_guard ending(mutex_);
            sessions_.remove(session);
        });
    }
}

void FakeApiServer::serve(Session& session) {
    const bool is_open = session.handshake();
    {
        const std::lock_guard lock(mutex_);
        server_name_ = session.server_name();
    }
    std::string received;
    while (is_open) {
        const auto request = next_request(session, received);
        if (!request) {
            break;
        }
        Handler handler;
        {
            const std::lock_guard lock(mutex_);
            requests_.push_back(*request);
            handler = handler_;
        }
        handler(*request, session);
    }
    session.end(is_open);
}

}  // namespace penstock::test
