// SPDX-License-Identifier: Apache-2.0
#include "tests/support/fake_http2_server.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <nghttp2/nghttp2.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <map>

#include "dataplane/base/check.hpp"

namespace penstock::test {
namespace {

struct Stream {
    RecordedRequest request;
    std::string unsent;
    bool is_answered = false;
    bool stays_open = false;
};

}  // namespace

// One connection. All functions except the marked ones run on its thread.
class FakeHttp2Server::Session {
 public:
    Session(FakeHttp2Server& server, int socket, int number)
        : server_(server), socket_(socket), number_(number) {
        ssl_ = SSL_new(server.context_.get());
        SSL_set_fd(ssl_, socket);
    }
    ~Session() {
        nghttp2_session_del(http2_);
        SSL_free(ssl_);
        ::close(socket_);
    }

    void run() {
        if (SSL_accept(ssl_) != 1) {
            return;
        }
        ::fcntl(socket_, F_SETFL, O_NONBLOCK);
        open_session();
        while (!is_ended_) {
            pollfd wanted{.fd = socket_, .events = static_cast<short>(is_frozen_ ? 0 : POLLIN)};
            // The timeout bounds how long a push waits for this thread.
            ::poll(&wanted, 1, 2);
            if ((wanted.revents & (POLLHUP | POLLERR)) != 0) {
                return;
            }
            if (is_frozen_) {
                continue;
            }
            const std::lock_guard lock(mutex_);
            if (!receive() || !send()) {
                return;
            }
        }
    }

    // Any thread.
    void end() {
        is_ended_ = true;
        ::shutdown(socket_, SHUT_RDWR);
    }
    void freeze() { is_frozen_ = true; }
    bool is_frozen() const { return is_frozen_; }
    bool is_closed_by_peer() const {
        pollfd asked{.fd = socket_, .events = POLLRDHUP, .revents = 0};
        return ::poll(&asked, 1, 0) > 0;
    }
    void go_away() {
        const std::lock_guard lock(mutex_);
        nghttp2_submit_goaway(http2_, NGHTTP2_FLAG_NONE, nghttp2_session_get_last_proc_stream_id(http2_),
                              NGHTTP2_NO_ERROR, nullptr, 0);
    }
    void push(const std::string& path, const std::string& bytes, bool is_last) {
        const std::lock_guard lock(mutex_);
        for (auto& [id, stream] : streams_) {
            if (stream.is_answered && stream.stays_open && stream.request.path() == path) {
                stream.unsent += bytes;
                stream.stays_open = !is_last;
                nghttp2_session_resume_data(http2_, id);
            }
        }
    }
    size_t open_streams(const std::string& path) {
        const std::lock_guard lock(mutex_);
        size_t open = 0;
        for (const auto& [id, stream] : streams_) {
            open += stream.stays_open && stream.request.path() == path && !is_frozen_ && !is_ended_ ? 1 : 0;
        }
        return open;
    }

 private:
    void open_session() {
        nghttp2_session_callbacks* callbacks = nullptr;
        nghttp2_session_callbacks_new(&callbacks);
        nghttp2_session_callbacks_set_on_header_callback(callbacks, &Session::on_header);
        nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, &Session::on_data);
        nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, &Session::on_frame);
        nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, &Session::on_close);
        const std::lock_guard lock(mutex_);
        nghttp2_session_server_new(&http2_, callbacks, this);
        nghttp2_session_callbacks_del(callbacks);
        nghttp2_submit_settings(http2_, NGHTTP2_FLAG_NONE, nullptr, 0);
    }

    bool receive() {
        std::array<char, 16384> part;
        while (true) {
            const int got = SSL_read(ssl_, part.data(), static_cast<int>(part.size()));
            if (got <= 0) {
                return SSL_get_error(ssl_, got) == SSL_ERROR_WANT_READ;
            }
            if (nghttp2_session_mem_recv(http2_, reinterpret_cast<const uint8_t*>(part.data()),
                                         static_cast<size_t>(got)) < 0) {
                return false;
            }
        }
    }

    bool send() {
        while (true) {
            if (unsent_.empty()) {
                const uint8_t* bytes = nullptr;
                const ssize_t length = nghttp2_session_mem_send(http2_, &bytes);
                if (length < 0) {
                    return false;
                }
                if (length == 0) {
                    return nghttp2_session_want_read(http2_) != 0 || nghttp2_session_want_write(http2_) != 0;
                }
                unsent_.assign(reinterpret_cast<const char*>(bytes), static_cast<size_t>(length));
            }
            const int sent = SSL_write(ssl_, unsent_.data(), static_cast<int>(unsent_.size()));
            if (sent <= 0) {
                return SSL_get_error(ssl_, sent) == SSL_ERROR_WANT_WRITE;
            }
            unsent_.erase(0, static_cast<size_t>(sent));
        }
    }

    static int on_header(nghttp2_session*, const nghttp2_frame* frame, const uint8_t* name,
                         size_t name_length, const uint8_t* value, size_t value_length, uint8_t, void* self) {
        RecordedRequest& request = static_cast<Session*>(self)->streams_[frame->hd.stream_id].request;
        const std::string key(reinterpret_cast<const char*>(name), name_length);
        const std::string text(reinterpret_cast<const char*>(value), value_length);
        if (key == ":method") {
            request.method = text;
        } else if (key == ":path") {
            request.target = text;
        } else {
            request.headers[key] = text;
        }
        return 0;
    }
    static int on_data(nghttp2_session*, uint8_t, int32_t id, const uint8_t* data, size_t length,
                       void* self) {
        static_cast<Session*>(self)->streams_[id].request.body.append(reinterpret_cast<const char*>(data),
                                                                      length);
        return 0;
    }
    static int on_frame(nghttp2_session*, const nghttp2_frame* frame, void* self) {
        if ((frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA) &&
            (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0) {
            static_cast<Session*>(self)->answer(frame->hd.stream_id);
        }
        return 0;
    }
    static int on_close(nghttp2_session*, int32_t id, uint32_t, void* self) {
        static_cast<Session*>(self)->streams_.erase(id);
        return 0;
    }

    void answer(int32_t id) {
        Stream& stream = streams_[id];
        stream.request.time = std::chrono::steady_clock::now();
        stream.request.connection = number_;
        stream.request.client_name = peer_common_name(ssl_);
        {
            const std::lock_guard lock(server_.mutex_);
            server_.requests_.push_back(stream.request);
        }
        const Answer answer = server_.handler_(stream.request);
        stream.unsent = answer.body;
        stream.stays_open = answer.stays_open;
        stream.is_answered = true;
        std::vector<std::pair<std::string, std::string>> headers = {
            {":status", std::to_string(answer.status)}, {"content-type", "application/json"}};
        headers.insert(headers.end(), answer.headers.begin(), answer.headers.end());
        std::vector<nghttp2_nv> fields;
        for (auto& [name, value] : headers) {
            fields.push_back({.name = reinterpret_cast<uint8_t*>(name.data()),
                              .value = reinterpret_cast<uint8_t*>(value.data()),
                              .namelen = name.size(),
                              .valuelen = value.size(),
                              .flags = NGHTTP2_NV_FLAG_NONE});
        }
        const nghttp2_data_provider body{.source = {.ptr = this}, .read_callback = &Session::read_body};
        nghttp2_submit_response(http2_, id, fields.data(), fields.size(), &body);
    }
    static ssize_t read_body(nghttp2_session*, int32_t id, uint8_t* to, size_t length, uint32_t* flags,
                             nghttp2_data_source* source, void*) {
        Stream& stream = static_cast<Session*>(source->ptr)->streams_[id];
        const size_t taken = std::min(length, stream.unsent.size());
        if (taken == 0 && stream.stays_open) {
            return NGHTTP2_ERR_DEFERRED;
        }
        stream.unsent.copy(reinterpret_cast<char*>(to), taken);
        stream.unsent.erase(0, taken);
        if (stream.unsent.empty() && !stream.stays_open) {
            *flags |= NGHTTP2_DATA_FLAG_EOF;
        }
        return static_cast<ssize_t>(taken);
    }

    FakeHttp2Server& server_;
    int socket_;
    int number_;
    SSL* ssl_ = nullptr;
    nghttp2_session* http2_ = nullptr;
    std::mutex mutex_;  // guards the members below and http2_
    std::map<int32_t, Stream> streams_;
    std::string unsent_;
    std::atomic<bool> is_ended_ = false;
    std::atomic<bool> is_frozen_ = false;
};

FakeHttp2Server::FakeHttp2Server(Handler handler, const ServerTls& tls)
    : context_(tls, {"h2"}), handler_(std::move(handler)) {
    ::signal(SIGPIPE, SIG_IGN);  // OpenSSL writes without MSG_NOSIGNAL
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{.sin_family = AF_INET, .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    socklen_t length = sizeof(address);
    PENSTOCK_CHECK(::bind(listener_, reinterpret_cast<const sockaddr*>(&address), length) == 0 &&
                   ::listen(listener_, 64) == 0 &&
                   ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &length) == 0);
    port_ = ntohs(address.sin_port);
    acceptor_ = std::thread([this] { accept_loop(); });
}

FakeHttp2Server::~FakeHttp2Server() {
    ::shutdown(listener_, SHUT_RDWR);
    acceptor_.join();
    ::close(listener_);
    for (const auto& session : sessions_) {
        session->end();
    }
    for (std::thread& thread : threads_) {
        thread.join();
    }
}

void FakeHttp2Server::accept_loop() {
    while (true) {
        const int socket = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
        if (socket < 0) {
            return;
        }
        const int on = 1;
        ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
        const std::lock_guard lock(mutex_);
        const auto session = std::make_shared<Session>(*this, socket, static_cast<int>(sessions_.size()) + 1);
        sessions_.push_back(session);  // ended ones are kept: their number is the count of connections
        threads_.emplace_back([session] {
            session->run();
            session->end();
        });
    }
}

void FakeHttp2Server::push(const std::string& path, const std::string& bytes) {
    for (const auto& session : sessions()) {
        session->push(path, bytes, false);
    }
}

void FakeHttp2Server::finish(const std::string& path) {
    for (const auto& session : sessions()) {
        session->push(path, "", true);
    }
}

void FakeHttp2Server::freeze() {
    for (const auto& session : sessions()) {
        session->freeze();
    }
}

bool FakeHttp2Server::are_frozen_connections_closed() const {
    return std::ranges::all_of(sessions(), [](const auto& session) {
        return !session->is_frozen() || session->is_closed_by_peer();
    });
}

void FakeHttp2Server::go_away() {
    for (const auto& session : sessions()) {
        session->go_away();
    }
}

// Returns a copy: a session takes the server's lock inside its own.
std::list<std::shared_ptr<FakeHttp2Server::Session>> FakeHttp2Server::sessions() const {
    const std::lock_guard lock(mutex_);
    return sessions_;
}

std::vector<RecordedRequest> FakeHttp2Server::requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
}

int FakeHttp2Server::connection_count() const {
    return static_cast<int>(sessions().size());
}

size_t FakeHttp2Server::open_streams(const std::string& path) const {
    size_t open = 0;
    for (const auto& session : sessions()) {
        open += session->open_streams(path);
    }
    return open;
}

}  // namespace penstock::test
