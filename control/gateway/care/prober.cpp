// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/care/prober.hpp"

#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <random>
#include <unordered_map>

#include "control/base/descriptor.hpp"
#include "control/log/log.hpp"

namespace penstock::gateway {
namespace {

using Clock = std::chrono::steady_clock;
using Time = Clock::time_point;

// An address as a sockaddr of the kernel, and its length.
std::pair<sockaddr_storage, socklen_t> to_sockaddr(const SocketAddress& socket) {
    sockaddr_storage storage{};
    const auto bytes = socket.address.bytes();
    if (socket.address.family() == IpFamily::V4) {
        auto& v4 = reinterpret_cast<sockaddr_in&>(storage);
        v4.sin_family = AF_INET;
        v4.sin_port = htons(socket.port);
        std::memcpy(&v4.sin_addr, bytes.data() + 12, 4);
        return {storage, sizeof(sockaddr_in)};
    }
    auto& v6 = reinterpret_cast<sockaddr_in6&>(storage);
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(socket.port);
    std::memcpy(&v6.sin6_addr, bytes.data(), 16);
    return {storage, sizeof(sockaddr_in6)};
}

std::string error_text(int code) {
    return std::strerror(code);
}

// Errors caused by this host, not by the endpoint: lack of descriptors, memory or source ports.
bool is_our_own(int code) {
    return code == EMFILE || code == ENFILE || code == ENOMEM || code == ENOBUFS || code == ENOSPC ||
           code == EADDRNOTAVAIL || code == EAGAIN;
}
constexpr std::chrono::seconds kComplainEvery{60};

// Only the status line of a response, "HTTP/1.1 200", is evaluated.
constexpr size_t kStatusLineBytes = 12;

// One probe in progress.
struct Conversation {
    ProbeTarget target;
    Descriptor socket;
    Time deadline;
    bool connected = false;
    std::string request;  // bytes still to be sent
    std::string received;
};

}  // namespace

std::optional<ProbeAnswer> http_answer(std::string_view received) {
    constexpr std::string_view kProtocol = "HTTP/1.";
    if (!received.starts_with(kProtocol.substr(0, std::min(received.size(), kProtocol.size())))) {
        return ProbeAnswer{false, "the response is not HTTP"};
    }
    if (received.size() < kStatusLineBytes) {
        return std::nullopt;
    }
    const std::string_view status = received.substr(kStatusLineBytes - 4, 4);
    const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
    if (status.front() != ' ' || !std::ranges::all_of(status.substr(1), is_digit)) {
        return ProbeAnswer{false, "the response is not HTTP"};  // the received bytes are not logged
    }
    return status == " 200" ? ProbeAnswer{true, ""} : ProbeAnswer{false, "HTTP status" + std::string(status)};
}

size_t probes_open_max() {
    constexpr size_t kMax = 4'096;
    rlimit limit{};
    return ::getrlimit(RLIMIT_NOFILE, &limit) != 0
               ? kMax
               : std::min<size_t>(kMax, std::max<size_t>(1, limit.rlim_cur / 2));
}

class Prober::Loop {
 public:
    Loop(Report report, Descriptor epoll, Descriptor wake)
        : report_(std::move(report)),
          epoll_(std::move(epoll)),
          wake_(std::move(wake)),
          schedule_(probes_open_max(), std::random_device{}()) {}

    void set(std::vector<std::pair<model::ServiceKey, std::shared_ptr<const model::Service>>> services) {
        {
            const std::lock_guard lock(mutex_);
            news_.insert(news_.end(), std::make_move_iterator(services.begin()),
                         std::make_move_iterator(services.end()));
        }
        wake();
    }
    void wake() const {
        const uint64_t one = 1;
        static_cast<void>(!::write(wake_.get(), &one, sizeof(one)));  // full: the thread is awake already
    }
    ProbeSchedule::Counters counters() const {
        const std::lock_guard lock(mutex_);
        return counters_;
    }

    void run(const std::stop_token& stopped) {
        while (!stopped.stop_requested()) {
            hear(sleep_ms(Clock::now()));
            work(Clock::now());
        }
    }

 private:
    // Reads all pending socket events before any deadline is evaluated: if this thread is late itself,
    // responses that arrived in time are still in the sockets. The loop ends, because no socket is opened
    // meanwhile and each one has only a few bytes.
    void hear(int timeout_ms) {
        std::array<epoll_event, 64> events{};
        int ready = 0;
        do {
            ready = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()),
                                 std::exchange(timeout_ms, 0));
            for (int i = 0; i < ready; ++i) {
                if (const uint64_t id = events[static_cast<size_t>(i)].data.u64; id != 0) {
                    go_on(ProbeId{id});
                } else {
                    uint64_t times = 0;
                    static_cast<void>(!::read(wake_.get(), &times, sizeof(times)));
                }
            }
        } while (ready == static_cast<int>(events.size()));
    }
    void work(Time now) {
        std::vector<std::pair<model::ServiceKey, std::shared_ptr<const model::Service>>> news;
        {
            const std::lock_guard lock(mutex_);
            news.swap(news_);
        }
        for (auto& [key, service] : news) {
            schedule_.set(key, std::move(service), now);
        }
        for (const ProbeId id : schedule_.take_cancelled()) {
            end(id);
        }
        while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
            const ProbeId id = deadlines_.begin()->second;
            const bool connected = conversations_.at(id).connected;
            conclude(id, {false,
                          connected ? "no response within the timeout" : "no connection within the timeout"});
        }
        // Their deadlines start now: set() of a big Service may have taken some time.
        for (auto& question : schedule_.due(Clock::now())) {
            begin(std::move(question));
        }
        const auto turns = schedule_.take_turns(now);
        for (const auto& turn : turns.told) {
            const std::string who = turn.target.socket.to_string();
            if (turn.verdict == Health::Up) {
                log::get("control").info("endpoint {} of service {} is up", who, turn.user.to_string());
            } else {
                log::get("control").warn("endpoint {} of service {} is down: {}", who, turn.user.to_string(),
                                         turn.why);
            }
        }
        if (turns.left_out > 0) {
            log::get("control").warn("{} more endpoints changed between up and down", turns.left_out);
        }
        if (schedule_.has_results() && now >= report_at_) {
            report_at_ = now + kReportEvery;
            if (auto results = schedule_.take_results(); !results.empty()) {
                report_(std::move(results));
            }
        }
        const std::lock_guard lock(mutex_);
        counters_ = schedule_.counters();
    }

    void begin(ProbeSchedule::Question question) {
        const auto& target = question.target;
        const int family = target.socket.address.family() == IpFamily::V4 ? AF_INET : AF_INET6;
        Descriptor socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
        const auto [address, length] = to_sockaddr(target.socket);
        if (!socket.is_open() ||
            (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), length) != 0 &&
             errno != EINPROGRESS)) {
            return not_begun(question.id, errno);
        }
        epoll_event event{.events = EPOLLOUT, .data = {.u64 = static_cast<uint64_t>(question.id)}};
        if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, socket.get(), &event) != 0) {
            return not_begun(question.id, errno);
        }
        Conversation& conversation = conversations_[question.id];
        conversation.socket = std::move(socket);
        conversation.deadline = question.deadline;
        if (target.kind == model::Probe::Kind::Http) {
            conversation.request =
                "GET " + target.path + " HTTP/1.1\r\nHost: " + target.socket.to_string() +
                "\r\nUser-Agent: penstock-probe\r\nAccept: */*\r\nConnection: close\r\n\r\n";
        }
        conversation.target = std::move(question.target);
        deadlines_.emplace(question.deadline, question.id);
    }

    void not_begun(ProbeId id, int code) {
        const Time now = Clock::now();
        if (!is_our_own(code)) {
            return schedule_.finished(id, false, error_text(code), now);
        }
        schedule_.could_not_ask(id, now);
        if (now >= complain_at_) {
            complain_at_ = now + kComplainEvery;
            log::get("control").warn("probes are delayed by a shortage of resources on this host: {}",
                                     error_text(code));
        }
    }

    // Handles a ready socket.
    void go_on(ProbeId id) {
        const auto found = conversations_.find(id);
        if (found == conversations_.end()) {
            return;
        }
        Conversation& conversation = found->second;
        const int fd = conversation.socket.get();
        if (!conversation.connected) {
            int error = 0;
            socklen_t length = sizeof(error);
            ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length);
            if (error != 0) {
                return conclude(id, {false, error_text(error)});
            }
            conversation.connected = true;
            if (conversation.target.kind == model::Probe::Kind::Tcp) {
                return conclude(id, {true, ""});
            }
        }
        if (!conversation.request.empty()) {
            const ssize_t sent =
                ::send(fd, conversation.request.data(), conversation.request.size(), MSG_NOSIGNAL);
            if (sent < 0 && errno != EAGAIN) {
                return conclude(id, {false, error_text(errno)});
            }
            conversation.request.erase(0, static_cast<size_t>(std::max<ssize_t>(sent, 0)));
            if (conversation.request.empty()) {
                epoll_event event{.events = EPOLLIN, .data = {.u64 = static_cast<uint64_t>(id)}};
                ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event);
            }
            return;
        }
        std::array<char, 256> chunk{};
        const ssize_t got = ::recv(fd, chunk.data(), chunk.size(), 0);
        if (got < 0 && errno == EAGAIN) {
            return;
        }
        if (got <= 0) {
            return conclude(id,
                            {false, got == 0 ? "connection closed without a response" : error_text(errno)});
        }
        conversation.received.append(chunk.data(), static_cast<size_t>(got));
        if (const auto answer = http_answer(conversation.received)) {
            conclude(id, *answer);
        }
    }

    void conclude(ProbeId id, const ProbeAnswer& answer) {
        end(id);
        schedule_.finished(id, answer.succeeded, answer.why, Clock::now());
    }
    // Closing a socket removes it from epoll.
    void end(ProbeId id) {
        const auto found = conversations_.find(id);
        if (found != conversations_.end()) {
            deadlines_.erase({found->second.deadline, id});
            conversations_.erase(found);
        }
    }

    [[nodiscard]] int sleep_ms(Time now) const {
        std::optional<Time> until = schedule_.next();
        const auto sooner = [&until](Time time) { until = std::min(until.value_or(time), time); };
        if (!deadlines_.empty()) {
            sooner(deadlines_.begin()->first);
        }
        if (schedule_.has_results()) {
            sooner(report_at_);
        }
        if (!until) {
            return -1;
        }
        return static_cast<int>(
            std::max<int64_t>(0, std::chrono::ceil<std::chrono::milliseconds>(*until - now).count()));
    }

    const Report report_;
    const Descriptor epoll_;
    const Descriptor wake_;

    ProbeSchedule schedule_;  // this and all members below: used by the prober's thread only
    std::unordered_map<ProbeId, Conversation> conversations_;
    std::set<std::pair<Time, ProbeId>> deadlines_;
    Time report_at_{};
    Time complain_at_{};

    mutable std::mutex mutex_;
    std::vector<std::pair<model::ServiceKey, std::shared_ptr<const model::Service>>> news_;
    ProbeSchedule::Counters counters_;
};

Prober::Prober(std::unique_ptr<Loop> loop)
    : loop_(std::move(loop)),
      thread_([loop = loop_.get()](const std::stop_token& stopped) { loop->run(stopped); }) {}

Prober::~Prober() {
    thread_.request_stop();
    loop_->wake();
}

Result<std::unique_ptr<Prober>> Prober::start(Report report) {
    Descriptor epoll(::epoll_create1(EPOLL_CLOEXEC));
    Descriptor wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    epoll_event event{.events = EPOLLIN, .data = {.u64 = 0}};
    if (!epoll.is_open() || !wake.is_open() ||
        ::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, wake.get(), &event) != 0) {
        return fail(Errc::Unavailable, "probes: " + error_text(errno));
    }
    return std::unique_ptr<Prober>(
        new Prober(std::make_unique<Loop>(std::move(report), std::move(epoll), std::move(wake))));
}

void Prober::set(std::vector<std::pair<model::ServiceKey, std::shared_ptr<const model::Service>>> services) {
    loop_->set(std::move(services));
}

ProbeSchedule::Counters Prober::counters() const {
    return loop_->counters();
}

}  // namespace penstock::gateway
