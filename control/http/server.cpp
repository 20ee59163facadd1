#include "control/http/server.hpp"

#include <fcntl.h>
#include <netinet/in.h>

#include <array>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <charconv>
#include <deque>
#include <future>
#include <limits>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include "control/http/gzip.hpp"
#include "dataplane/base/ip.hpp"

namespace penstock::http {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
using asio::ip::tcp;
using boost::system::error_code;

// After a failed accept, for example without free descriptors: an immediate retry would only use the CPU.
constexpr std::chrono::milliseconds kAcceptPause{100};
// Of a request that was not read to its end, such as a body or a second, pipelined request.
constexpr size_t kDiscardedBytesMax = 65'536;
// Shorter pages fit in one packet uncompressed.
constexpr size_t kGzipBytesMin = 1'400;

struct Address {
    IpAddr host;
    uint16_t port = 0;
};

Result<Address> parse_address(const std::string& text) {
    const auto refuse = [&text] {
        return fail(Errc::InvalidArgument,
                    "\"" + text + "\" must be ADDRESS:PORT, with an IPv6 address in brackets");
    };
    const size_t colon = text.rfind(':');
    if (colon == std::string::npos || colon == 0) {
        return refuse();
    }
    std::string host = text.substr(0, colon);
    const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
    const auto parsed = IpAddr::parse(bracketed ? host.substr(1, host.size() - 2) : host);
    if (!parsed || bracketed != (parsed->family() == IpFamily::V6)) {
        return refuse();
    }
    Address address{.host = *parsed};
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data() + colon + 1, end, address.port);
    if (error != std::errc{} || stop != end) {
        return refuse();
    }
    return address;
}

tcp::endpoint endpoint_of(const Address& address) {
    const auto& bytes = address.host.bytes();
    if (address.host.is_v4()) {
        return {asio::ip::address_v4({bytes[12], bytes[13], bytes[14], bytes[15]}), address.port};
    }
    return {asio::ip::address_v6(bytes), address.port};
}

IpAddr address_of(const asio::ip::address& address) {
    if (address.is_v4()) {
        const auto bytes = address.to_v4().to_bytes();
        return IpAddr::v4(bytes[0], bytes[1], bytes[2], bytes[3]);
    }
    return IpAddr::v6(address.to_v6().to_bytes());
}

const char* phrase(int status) {
    switch (status) {
        case 200:
            return "OK";
        case 400:
            return "Bad Request";
        case 404:
            return "Not Found";
        case 405:
            return "Method Not Allowed";
        case 431:
            return "Request Header Fields Too Large";
        case 503:
            return "Service Unavailable";
        default:
            return status < 400 ? "OK" : "Error";
    }
}

// The bytes to send.
struct Answer {
    std::string head;
    std::string body;
};

Answer answer_of(Response response, bool with_gzip) {
    Answer answer{.head = {}, .body = std::move(response.body)};
    if (with_gzip && answer.body.size() >= kGzipBytesMin) {
        if (std::string packed = gzip(answer.body); !packed.empty()) {
            answer.body = std::move(packed);
            response.headers.emplace_back("Content-Encoding", "gzip");
        }
    }
    answer.head = "HTTP/1.1 " + std::to_string(response.status) + " " + phrase(response.status) +
                  "\r\nContent-Type: " + response.content_type +
                  "\r\nContent-Length: " + std::to_string(answer.body.size()) +
                  "\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n";
    for (const auto& [name, value] : response.headers) {
        answer.head += name + ": " + value + "\r\n";
    }
    answer.head += "Connection: close\r\n\r\n";
    return answer;
}

// "/healthz" of "/healthz?verbose=1" and of "http://192.0.2.1/healthz".
std::string_view path_of(std::string_view target) {
    if (!target.starts_with('/')) {
        const size_t scheme = target.find("://");
        const size_t path = scheme == std::string_view::npos ? scheme : target.find('/', scheme + 3);
        target = path == std::string_view::npos ? std::string_view("/") : target.substr(path);
    }
    return target.substr(0, target.find('?'));
}

Response not_found(const Routes& routes) {
    Response missing{.status = 404, .body = "available paths:\n"};
    for (const auto& [known, ignored] : routes) {
        missing.body += known + "\n";
    }
    return missing;
}

void close_on_exec(int fd) {
    ::fcntl(fd, F_SETFD, FD_CLOEXEC);
}

}  // namespace

// The following code runs on the loop's thread unless noted otherwise.

class Session;

struct Loop::Impl {
    explicit Impl(AdmissionLimits limits)
        : work(io.get_executor()), admission(limits), thread([this] { io.run(); }) {}

    asio::io_context io{1};
    asio::executor_work_guard<asio::io_context::executor_type> work;
    Admission admission;
    ConnectionId last_id = 0;
    std::map<ConnectionId, Session*> sessions;  // open sessions
    std::set<ConnectionId> heavy;               // sessions that are receiving a heavy page
    std::thread thread;
};

struct Server::Impl : std::enable_shared_from_this<Server::Impl> {
    struct Listener {
        tcp::acceptor acceptor;
        asio::steady_timer pause;
    };
    struct Waiting {
        std::shared_ptr<Session> session;
        bool with_gzip = false;
    };
    // Requests for one heavy page. Requests that arrive while the page is being made wait for the next one,
    // so no client gets a page older than its request.
    struct HeavyPage {
        std::vector<Waiting> next;
        bool is_being_made = false;
    };

    Impl(Loop::Impl& loop_of, Routes routes_of) : loop(loop_of), routes(std::move(routes_of)) {}
    Status listen(const std::string& address, bool may_be_absent);
    void accept(Listener& listener);
    void take(tcp::socket socket);
    void serve(const std::shared_ptr<Session>& session, bool is_get_or_head, std::string_view target,
               bool with_gzip);
    void make_heavy(const std::string& path, const Route& route);
    void close();

    Loop::Impl& loop;
    const Routes routes;
    std::deque<Listener> listeners;
    std::map<ConnectionId, Session*> sessions;
    std::map<std::string, HeavyPage> heavy_pages;
    std::optional<asio::thread_pool> heavy_thread;
    uint16_t port = 0;
    bool is_closed = false;
};

// One connection: reads a request, sends the response, and waits for the peer to close. Kept alive by its
// pending handler.
class Session : public std::enable_shared_from_this<Session> {
 public:
    Session(tcp::socket socket, ConnectionId id, Loop::Impl& loop, std::shared_ptr<Server::Impl> server)
        : id_(id), loop_(loop), server_(std::move(server)), socket_(std::move(socket)), deadline_(loop.io) {
        parser_.header_limit(kRequestBytesMax);
        // Bodies are not read; without a limit all are refused (Boost 1.74).
        parser_.body_limit(std::numeric_limits<uint64_t>::max());
    }

    void read();
    void answer(std::shared_ptr<const Answer> answer, bool is_heavy);
    // Idempotent.
    void close();

 private:
    void close_at(std::chrono::milliseconds from_now);
    void heed(error_code error);
    void finish();
    void discard();

    const ConnectionId id_;
    Loop::Impl& loop_;
    const std::shared_ptr<Server::Impl> server_;
    tcp::socket socket_;
    asio::steady_timer deadline_;
    beast::flat_buffer buffer_{kRequestBytesMax};
    beast::http::request_parser<beast::http::buffer_body> parser_;
    std::shared_ptr<const Answer> answer_;
    std::array<char, 1'024> discarded_{};
    size_t discarded_bytes_ = 0;
    bool is_head_ = false;
    bool is_closed_ = false;
};

void Session::close_at(std::chrono::milliseconds from_now) {
    deadline_.expires_after(from_now);  // cancels the previous wait
    deadline_.async_wait([self = shared_from_this()](error_code error) {
        // A wait that ended just before it was cancelled arrives without an error.
        if (!error && self->deadline_.expiry() <= asio::steady_timer::clock_type::now()) {
            self->close();
        }
    });
}

void Session::close() {
    if (std::exchange(is_closed_, true)) {
        return;
    }
    error_code ignored;
    deadline_.cancel(ignored);
    socket_.close(ignored);
    loop_.admission.remove(id_);
    loop_.sessions.erase(id_);
    loop_.heavy.erase(id_);
    server_->sessions.erase(id_);
}

void Session::read() {
    close_at(kRequestTimeout);
    beast::http::async_read_header(
        socket_, buffer_, parser_,
        [self = shared_from_this()](error_code error, size_t) { self->heed(error); });
}

void Session::heed(error_code error) {
    using HttpError = beast::http::error;
    if (is_closed_) {
        return;
    }
    const auto refuse = [this](int status, const char* why) {
        loop_.admission.set_silent(id_, false);
        answer(std::make_shared<const Answer>(answer_of({.status = status, .body = why}, false)), false);
    };
    if (error == HttpError::header_limit || error == HttpError::buffer_overflow) {
        refuse(431, "the request is too long\n");
    } else if (error == HttpError::end_of_stream || error == HttpError::partial_message) {
        close();  // the client closed the connection
    } else if (error && error.category() == make_error_code(HttpError::bad_method).category()) {
        refuse(400, "not an HTTP request\n");
    } else if (error) {
        close();
    } else {
        loop_.admission.set_silent(id_, false);
        const auto& request = parser_.get();
        const auto verb = request.method();
        is_head_ = verb == beast::http::verb::head;
        const auto coding = request[beast::http::field::accept_encoding];
        const auto target = request.target();
        server_->serve(shared_from_this(), is_head_ || verb == beast::http::verb::get,
                       {target.data(), target.size()}, accepts_gzip({coding.data(), coding.size()}));
    }
}

void Session::answer(std::shared_ptr<const Answer> answer, bool is_heavy) {
    if (is_closed_) {
        return;
    }
    answer_ = std::move(answer);
    if (is_heavy) {
        if (loop_.heavy.size() >= kHeavyAnswersMax) {
            loop_.sessions.at(*loop_.heavy.begin())->close();
        }
        loop_.heavy.insert(id_);
    }
    close_at(kAnswerTimeout);
    const std::array<asio::const_buffer, 2> buffers{
        asio::buffer(answer_->head), is_head_ ? asio::const_buffer() : asio::buffer(answer_->body)};
    asio::async_write(socket_, buffers, [self = shared_from_this()](error_code error, size_t) {
        if (error) {
            self->close();
        } else {
            self->finish();
        }
    });
}

void Session::finish() {
    if (is_closed_) {
        return;
    }
    answer_.reset();
    loop_.heavy.erase(id_);
    loop_.admission.set_silent(id_, true);
    error_code error;
    socket_.shutdown(tcp::socket::shutdown_send, error);
    close_at(kCloseTimeout);
    discard();
}

void Session::discard() {
    socket_.async_read_some(asio::buffer(discarded_),
                            [self = shared_from_this()](error_code error, size_t bytes) {
                                self->discarded_bytes_ += bytes;
                                if (error || self->discarded_bytes_ > kDiscardedBytesMax) {
                                    self->close();
                                } else {
                                    self->discard();
                                }
                            });
}

// Any thread, because the loop accepts nothing for it yet.
Status Server::Impl::listen(const std::string& text, bool may_be_absent) {
    const auto parsed = parse_address(text);
    if (!parsed) {
        return std::unexpected(parsed.error());
    }
    const tcp::endpoint endpoint = endpoint_of(*parsed);
    Listener& listener =
        listeners.emplace_back(Listener{tcp::acceptor(loop.io), asio::steady_timer(loop.io)});
    error_code error;
    const auto steps = [&] {
        if (listener.acceptor.open(endpoint.protocol(), error)) {
            return;
        }
        close_on_exec(listener.acceptor.native_handle());
        if (listener.acceptor.set_option(tcp::acceptor::reuse_address(true), error)) {
            return;
        }
        // 0.0.0.0 and [::] on the same port are two servers.
        if (endpoint.protocol() == tcp::v6() &&
            listener.acceptor.set_option(asio::ip::v6_only(true), error)) {
            return;
        }
        if (may_be_absent) {
            const int on = 1;  // for sockets of both families
            ::setsockopt(listener.acceptor.native_handle(), IPPROTO_IP, IP_FREEBIND, &on, sizeof(on));
        }
        if (!listener.acceptor.bind(endpoint, error)) {
            listener.acceptor.listen(tcp::acceptor::max_listen_connections, error);
        }
    };
    steps();
    if (error) {
        return fail(Errc::Unavailable, "HTTP cannot listen on " + text + ": " + error.message());
    }
    if (listeners.size() == 1) {
        port = listener.acceptor.local_endpoint(error).port();
    }
    return {};
}

void Server::Impl::accept(Listener& listener) {
    listener.acceptor.async_accept(
        [self = shared_from_this(), &listener](error_code error, tcp::socket socket) {
            if (self->is_closed) {
                return;
            }
            if (!error) {
                self->take(std::move(socket));
            } else if (error != asio::error::connection_aborted) {
                listener.pause.expires_after(kAcceptPause);
                listener.pause.async_wait([self, &listener](error_code) {
                    if (!self->is_closed) {
                        self->accept(listener);
                    }
                });
                return;
            }
            self->accept(listener);
        });
}

void Server::Impl::take(tcp::socket socket) {
    error_code error;
    const auto peer = socket.remote_endpoint(error);
    if (error) {
        return;  // already reset
    }
    close_on_exec(socket.native_handle());
    const ConnectionId id = ++loop.last_id;
    const auto evicted = loop.admission.admit(id, address_of(peer.address()));
    if (evicted) {
        loop.sessions.at(*evicted)->close();
    }
    const auto session = std::make_shared<Session>(std::move(socket), id, loop, shared_from_this());
    loop.sessions.emplace(id, session.get());
    sessions.emplace(id, session.get());
    session->read();
}

void Server::Impl::serve(const std::shared_ptr<Session>& session, bool is_get_or_head,
                         std::string_view target, bool with_gzip) {
    const auto answer_now = [&](Response response) {
        session->answer(std::make_shared<const Answer>(answer_of(std::move(response), false)), false);
    };
    if (!is_get_or_head) {
        answer_now({.status = 405,
                    .body = "only GET and HEAD are supported\n",
                    .headers = {{"Allow", "GET, HEAD"}}});
        return;
    }
    auto route = routes.find(path_of(target));
    if (route == routes.end()) {
        route = routes.find(kAnyPath);
    }
    if (route == routes.end()) {
        answer_now(not_found(routes));
    } else if (!route->second.is_heavy) {
        answer_now(route->second.make());
    } else {
        HeavyPage& page = heavy_pages[route->first];
        page.next.push_back({session, with_gzip});
        if (!page.is_being_made) {
            make_heavy(route->first, route->second);
        }
    }
}

void Server::Impl::make_heavy(const std::string& path, const Route& route) {
    HeavyPage& page = heavy_pages.at(path);
    page.is_being_made = true;
    asio::post(*heavy_thread,
               [self = shared_from_this(), &path, &route, waiting = std::exchange(page.next, {})]() mutable {
                   Response response = route.make();
                   std::array<std::shared_ptr<const Answer>, 2> answers;  // uncompressed, and gzip
                   for (const Waiting& request : waiting) {
                       auto& answer = answers[request.with_gzip ? 1 : 0];
                       if (answer == nullptr) {
                           answer = std::make_shared<const Answer>(answer_of(response, request.with_gzip));
                       }
                   }
                   asio::post(self->loop.io, [self, &path, &route, waiting = std::move(waiting), answers] {
                       if (self->is_closed) {
                           return;
                       }
                       for (const Waiting& request : waiting) {
                           request.session->answer(answers[request.with_gzip ? 1 : 0], true);
                       }
                       HeavyPage& made = self->heavy_pages.at(path);
                       made.is_being_made = false;
                       if (!made.next.empty()) {
                           self->make_heavy(path, route);
                       }
                   });
               });
}

void Server::Impl::close() {
    is_closed = true;
    for (Listener& listener : listeners) {
        error_code ignored;
        listener.acceptor.close(ignored);
        listener.pause.cancel(ignored);
    }
    while (!sessions.empty()) {
        sessions.begin()->second->close();
    }
    heavy_pages.clear();
}

Loop::Loop(AdmissionLimits limits) : impl_(std::make_unique<Impl>(limits)) {}

Loop::~Loop() {
    impl_->work.reset();
    impl_->thread.join();
}

Server::Server(std::shared_ptr<Loop> loop, std::shared_ptr<Impl> impl)
    : loop_(std::move(loop)), impl_(std::move(impl)) {}

Server::~Server() {
    std::promise<void> closed;
    asio::post(impl_->loop.io, [this, &closed] {
        impl_->close();
        closed.set_value();
    });
    closed.get_future().wait();
    if (impl_->heavy_thread) {
        impl_->heavy_thread->join();
    }
}

uint16_t Server::port() const {
    return impl_->port;
}

Status check_address(const std::string& address) {
    const auto parsed = parse_address(address);
    return parsed ? Status() : std::unexpected(parsed.error());
}

Result<std::unique_ptr<Server>> Server::start(ServerOptions options, std::shared_ptr<Loop> loop) {
    auto impl = std::make_shared<Impl>(*loop->impl_, std::move(options.routes));
    for (const std::string& address : options.addresses) {
        if (const Status listening = impl->listen(address, options.addresses_may_be_absent); !listening) {
            return std::unexpected(listening.error());
        }
    }
    for (const auto& [path, route] : impl->routes) {
        if (route.is_heavy && !impl->heavy_thread) {
            impl->heavy_thread.emplace(1);
        }
    }
    asio::post(impl->loop.io, [impl] {
        for (Impl::Listener& listener : impl->listeners) {
            impl->accept(listener);
        }
    });
    return std::unique_ptr<Server>(new Server(std::move(loop), std::move(impl)));
}

}  // namespace penstock::http
