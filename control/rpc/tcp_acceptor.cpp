// SPDX-License-Identifier: Apache-2.0
#include "control/rpc/tcp_acceptor.hpp"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "control/base/host_port.hpp"
#include "control/log/log.hpp"

namespace penstock::rpc {
namespace {

// Pause after a failed accept: an immediate retry would only use the CPU.
constexpr int kAcceptPauseMs = 100;
// The same value as gRPC sets on its own listeners: a connection ends if the peer acknowledges nothing for
// this time.
constexpr int kUserTimeoutMs = 20'000;

std::string errno_text(int error = errno) {
    return std::strerror(error);
}

void set(int fd, int level, int option, int value) {
    ::setsockopt(fd, level, option, &value, sizeof(value));
}

uint16_t port_of(int fd) {
    sockaddr_storage own{};
    socklen_t length = sizeof(own);
    if (::getsockname(fd, reinterpret_cast<sockaddr*>(&own), &length) != 0) {
        return 0;
    }
    return ntohs(own.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(own).sin6_port
                                           : reinterpret_cast<const sockaddr_in&>(own).sin_port);
}

IpAddr address_of(const sockaddr_storage& peer) {
    std::array<uint8_t, 16> bytes{};
    if (peer.ss_family == AF_INET) {
        std::memcpy(bytes.data() + 12, &reinterpret_cast<const sockaddr_in&>(peer).sin_addr, 4);
        return IpAddr::v4(bytes[12], bytes[13], bytes[14], bytes[15]);
    }
    const in6_addr& address = reinterpret_cast<const sockaddr_in6&>(peer).sin6_addr;
    std::memcpy(bytes.data(), &address, bytes.size());
    return IN6_IS_ADDR_V4MAPPED(&address) ? IpAddr::v4(bytes[12], bytes[13], bytes[14], bytes[15])
                                          : IpAddr::v6(bytes);
}

bool has_ipv6() {
    return Descriptor(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0)).is_open() || errno != EAFNOSUPPORT;
}

// The error of the last failed step is in errno.
Descriptor bind_to(const addrinfo& where, bool both_families) {
    Descriptor fd(::socket(where.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!fd.is_open()) {
        return fd;
    }
    set(fd.get(), SOL_SOCKET, SO_REUSEADDR, 1);
    if (where.ai_family == AF_INET6) {
        set(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, both_families ? 0 : 1);
    }
    // Accepted connections inherit these options.
    set(fd.get(), IPPROTO_TCP, TCP_NODELAY, 1);
    set(fd.get(), IPPROTO_TCP, TCP_USER_TIMEOUT, kUserTimeoutMs);
    if (::bind(fd.get(), where.ai_addr, where.ai_addrlen) != 0 || ::listen(fd.get(), SOMAXCONN) != 0) {
        return Descriptor(-1);
    }
    return fd;
}

}  // namespace

TcpAcceptor::TcpAcceptor(ConnectionLimits limits, Descriptor poll, Descriptor wake)
    : poll_(std::move(poll)), wake_(std::move(wake)), limit_(limits), limits_(limits) {}

TcpAcceptor::~TcpAcceptor() {
    stop();
}

Result<std::unique_ptr<TcpAcceptor>> TcpAcceptor::listen(std::span<const std::string> addresses,
                                                         ConnectionLimits limits) {
    Descriptor poll(::epoll_create1(EPOLL_CLOEXEC));
    Descriptor wake(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
    if (!poll.is_open() || !wake.is_open()) {
        return fail(Errc::Exhausted, "epoll or eventfd: " + errno_text());
    }
    std::unique_ptr<TcpAcceptor> acceptor(new TcpAcceptor(limits, std::move(poll), std::move(wake)));
    for (const std::string& address : addresses) {
        PENSTOCK_TRY_STATUS(acceptor->add(address));
    }
    return acceptor;
}

Status TcpAcceptor::add(const std::string& address) {
    const HostPort where = split_host_port(address);
    const bool is_any = where.host == "0.0.0.0" || where.host == "::";
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_PASSIVE;
    const auto listen_on = [&](const char* host, bool both_families) -> Status {
        addrinfo* list = nullptr;
        if (const int error = ::getaddrinfo(host, where.port.c_str(), &hints, &list); error != 0) {
            return fail(Errc::Unavailable, ::gai_strerror(error));
        }
        const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(list, &::freeaddrinfo);
        std::string why;
        size_t bound = 0;
        uint16_t port = 0;
        for (const addrinfo* each = list; each != nullptr; each = each->ai_next) {
            if (port != 0) {  // port 0 means the same port on each address of a name
                reinterpret_cast<sockaddr_in*>(each->ai_addr)->sin_port =
                    htons(port);  // the port of the IPv6 address, if there is one
            }
            Descriptor fd = bind_to(*each, both_families);
            if (!fd.is_open()) {
                why = why.empty() ? listen_error(errno, where.port) : why;
                continue;
            }
            ++bound;
            port = port_of(fd.get());
            listeners_.push_back(std::move(fd));
        }
        if (bound > 0 && !why.empty()) {
            log::get("rpc").warn("{}: cannot listen on all of its addresses: {}", address, why);
        }
        return bound > 0 ? Status() : fail(Errc::Unavailable, why);
    };
    // Only a host without IPv6 is served over IPv4 alone. A port that another program uses in IPv6 is an
    // error.
    const char* const host = !is_any ? where.host.c_str() : has_ipv6() ? "::" : "0.0.0.0";
    const Status done = listen_on(host, is_any);
    return done ? done : fail(Errc::Unavailable, "cannot listen on " + address + ": " + done.error().what);
}

void TcpAcceptor::start(Take take) {
    take_ = std::move(take);
    epoll_event event{.events = EPOLLIN, .data = {.fd = wake_.get()}};
    ::epoll_ctl(poll_.get(), EPOLL_CTL_ADD, wake_.get(), &event);
    for (const Descriptor& listener : listeners_) {
        event = {.events = EPOLLIN, .data = {.fd = listener.get()}};
        ::epoll_ctl(poll_.get(), EPOLL_CTL_ADD, listener.get(), &event);
    }
    thread_ = std::thread([this] { run(); });
}

void TcpAcceptor::stop() {
    is_stopping_.store(true, std::memory_order_relaxed);
    ::eventfd_write(wake_.get(), 1);
    if (thread_.joinable()) {
        thread_.join();
    }
    listeners_.clear();
    open_.clear();
}

ConnectionCounts TcpAcceptor::counts() const noexcept {
    return {.open = open_count_.load(std::memory_order_relaxed),
            .refused_per_source = refused_per_source_.load(std::memory_order_relaxed),
            .refused_all = refused_all_.load(std::memory_order_relaxed)};
}

uint16_t TcpAcceptor::port() const {
    return listeners_.empty() ? 0 : port_of(listeners_.front().get());
}

void TcpAcceptor::run() {
    std::array<epoll_event, 64> events{};
    bool is_paused = false;
    while (!is_stopping_.load(std::memory_order_relaxed)) {
        const int count =
            ::epoll_wait(poll_.get(), events.data(), events.size(), is_paused ? kAcceptPauseMs : -1);
        // Handles closed connections first: a client that replaces its connection must not be refused because
        // of the old one.
        for (int i = 0; i < count; ++i) {
            const auto ended = open_.find(events[static_cast<size_t>(i)].data.fd);
            if (ended != open_.end() && (events[static_cast<size_t>(i)].events & EPOLLHUP) != 0) {
                limit_.release(ended->second.source);
                // gRPC may not have closed its descriptor yet. Closing only this one would leave it
                // registered in epoll.
                ::epoll_ctl(poll_.get(), EPOLL_CTL_DEL, ended->first, nullptr);
                open_.erase(ended);
            }
        }
        open_count_.store(limit_.size(), std::memory_order_relaxed);
        if (is_paused) {
            is_paused = false;
            watch_listeners(true);
            continue;
        }
        for (int i = 0; i < count && !is_paused; ++i) {
            const int fd = events[static_cast<size_t>(i)].data.fd;
            if (std::ranges::any_of(listeners_,
                                    [fd](const Descriptor& listener) { return listener.get() == fd; }) &&
                !accept_all(fd)) {
                is_paused = true;
                watch_listeners(false);
            }
        }
    }
}

void TcpAcceptor::watch_listeners(bool on) {
    for (const Descriptor& listener : listeners_) {
        epoll_event event{.events = on ? EPOLLIN : 0U, .data = {.fd = listener.get()}};
        ::epoll_ctl(poll_.get(), EPOLL_CTL_MOD, listener.get(), &event);
    }
}

bool TcpAcceptor::accept_all(int listener) {
    constexpr int kAtOnce = 64;
    for (int i = 0; i < kAtOnce; ++i) {
        sockaddr_storage peer{};
        socklen_t length = sizeof(peer);
        Descriptor connection(
            ::accept4(listener, reinterpret_cast<sockaddr*>(&peer), &length, SOCK_NONBLOCK | SOCK_CLOEXEC));
        if (!connection.is_open()) {
            if (errno == ECONNABORTED || errno == EINTR) {
                continue;
            }
            if (errno == EAGAIN) {
                return true;
            }
            if (const auto left_out = lines_.admit()) {
                log::get("rpc").warn("cannot accept a connection: {}", errno_text());
            }
            return false;
        }
        take_connection(listener, std::move(connection), address_of(peer));
    }
    return true;
}

void TcpAcceptor::take_connection(int listener, Descriptor connection, const IpAddr& source) {
    if (const auto rule = limit_.admit(source)) {
        return refuse(std::move(connection), source, *rule);
    }
    Descriptor duplicate(::fcntl(connection.get(), F_DUPFD_CLOEXEC, 0));
    const int fd = duplicate.get();
    // Edge-triggered: an error that does not end the connection is reported only once.
    epoll_event event{.events = EPOLLET, .data = {.fd = fd}};
    if (!duplicate.is_open() || ::epoll_ctl(poll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
        if (const auto left_out = lines_.admit()) {
            log::get("rpc").warn("cannot accept a connection from {}: {}", source.to_string(), errno_text());
        }
        limit_.release(source);
        return;
    }
    open_.emplace(fd, Open{.duplicate = std::move(duplicate), .source = source});
    open_count_.store(limit_.size(), std::memory_order_relaxed);
    take_(listener, connection.release());
}

void TcpAcceptor::refuse(Descriptor connection, const IpAddr& source, ConnectionLimit::Rule rule) {
    const bool per_source = rule == ConnectionLimit::Rule::PerSource;
    (per_source ? refused_per_source_ : refused_all_).fetch_add(1, std::memory_order_relaxed);
    if (const auto left_out = lines_.admit()) {
        const std::string loopback =
            source.is_loopback() ? ", or " + std::to_string(limits_.loopback_max) + " from loopback," : "";
        const std::string limit =
            per_source ? std::to_string(limits_.per_source_max) + " from one source" + loopback
                       : std::to_string(limits_.all_max) + " in total, of which " +
                             std::to_string(limits_.loopback_reserve) + " are reserved for loopback,";
        log::get("rpc").warn(
            "connection from {} refused: the limit of {} is reached{}", source.to_string(), limit,
            *left_out == 0 ? "" : " (" + std::to_string(*left_out) + " earlier refusals not logged)");
    }
    // Closes with a RST, so that no TIME-WAIT state remains here.
    const linger at_once{.l_onoff = 1, .l_linger = 0};
    ::setsockopt(connection.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
}

}  // namespace penstock::rpc
