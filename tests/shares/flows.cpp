// SPDX-License-Identifier: Apache-2.0
// Many long-lived flows and the servers that they reach, for suite shares (tests/shares/many_flows.py).
// Python is too slow for 10,000 flows beside two gateways on two processors.
//
//   share-flows serve NAME PORT
//   share-flows client ADDRESS PORT TCP UDP FAST FAST_MS SLOW_MS
//
// The server answers each byte of a TCP stream, and the first byte of each datagram, with the line
// "BYTE NAME CLIENT-ADDRESS CLIENT-PORT", as it has the client.
//
// The client opens TCP and UDP flows. FAST of each kind send a byte every FAST_MS, the others every SLOW_MS.
// The byte is the epoch, a letter. Commands are lines on the standard input, each answered by a line of JSON:
//
//   epoch    the next letter: only answers to what is sent from now on count as answers
//   mark     from now on it is a finding if a flow breaks, or if the server or the client's address or port
//            in its answers changes. Before, a flow that breaks is opened again. Times without an answer
//            count from the mark on
//   report   nothing more
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr size_t kOpeningMax = 64;  // connections that are being opened at once
constexpr milliseconds kReopenAfter{100};
constexpr int kBacklog = 4096;
constexpr int kEventsMax = 256;

[[noreturn]] void give_up(const char* what) {
    std::perror(what);
    std::exit(1);
}

int checked(int result, const char* what) {
    if (result < 0) {
        give_up(what);
    }
    return result;
}

void allow_descriptors() {
    rlimit limit{};
    checked(getrlimit(RLIMIT_NOFILE, &limit), "getrlimit");
    limit.rlim_cur = limit.rlim_max;
    checked(setrlimit(RLIMIT_NOFILE, &limit), "setrlimit");
}

void watch(int poll, int operation, int descriptor, uint32_t events, uint64_t tag) {
    epoll_event event{};
    event.events = events;
    event.data.u64 = tag;
    checked(epoll_ctl(poll, operation, descriptor, &event), "epoll_ctl");
}

// ---- server

std::string identity_of(const char* name, const sockaddr_in& client) {
    char address[INET_ADDRSTRLEN];
    inet_ntop(AF_INET, &client.sin_addr, address, sizeof(address));
    return std::string(" ") + name + " " + address + " " + std::to_string(ntohs(client.sin_port)) + "\n";
}

// An answer that does not fit into the socket's buffer is lost. A client would have to send thousands of
// bytes ahead.
void answer_stream(int poll, int descriptor, std::unordered_map<int, std::string>& identities) {
    char asked[512];
    const ssize_t received = recv(descriptor, asked, sizeof(asked), MSG_DONTWAIT);
    if (received < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    if (received <= 0) {
        watch(poll, EPOLL_CTL_DEL, descriptor, 0, 0);
        identities.erase(descriptor);
        close(descriptor);
        return;
    }
    std::string answer;
    for (const char byte : std::string_view(asked, static_cast<size_t>(received))) {
        answer += byte + identities[descriptor];
    }
    (void)send(descriptor, answer.data(), answer.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
}

void answer_datagrams(int descriptor, const char* name) {
    for (int i = 0; i < kEventsMax; i++) {
        sockaddr_in client{};
        socklen_t size = sizeof(client);
        char asked[512];
        const ssize_t received = recvfrom(descriptor, asked, sizeof(asked), MSG_DONTWAIT,
                                          reinterpret_cast<sockaddr*>(&client), &size);
        if (received <= 0) {
            return;
        }
        const std::string answer = asked[0] + identity_of(name, client);
        (void)sendto(descriptor, answer.data(), answer.size(), MSG_DONTWAIT,
                     reinterpret_cast<const sockaddr*>(&client), size);
    }
}

int listener(int type, uint16_t port) {
    const int made = checked(socket(AF_INET, type | SOCK_NONBLOCK, 0), "socket");
    const int on = 1;
    checked(setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)), "SO_REUSEADDR");
    const int buffer = 1 << 20;
    checked(setsockopt(made, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof(buffer)), "SO_RCVBUF");
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    checked(bind(made, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), "bind");
    return made;
}

[[noreturn]] void serve(const char* name, uint16_t port) {
    const int streams = listener(SOCK_STREAM, port);
    checked(listen(streams, kBacklog), "listen");
    const int datagrams = listener(SOCK_DGRAM, port);
    const int poll = checked(epoll_create1(0), "epoll_create1");
    std::unordered_map<int, std::string> identities;
    watch(poll, EPOLL_CTL_ADD, streams, EPOLLIN, static_cast<uint64_t>(streams));
    watch(poll, EPOLL_CTL_ADD, datagrams, EPOLLIN, static_cast<uint64_t>(datagrams));
    for (;;) {
        epoll_event events[kEventsMax];
        const int count = epoll_wait(poll, events, kEventsMax, -1);
        for (int i = 0; i < count; i++) {
            const int descriptor = static_cast<int>(events[i].data.u64);
            if (descriptor == datagrams) {
                answer_datagrams(datagrams, name);
                continue;
            }
            if (descriptor != streams) {
                answer_stream(poll, descriptor, identities);
                continue;
            }
            sockaddr_in client{};
            socklen_t size = sizeof(client);
            const int accepted = accept4(streams, reinterpret_cast<sockaddr*>(&client), &size, SOCK_NONBLOCK);
            if (accepted >= 0) {
                const int on = 1;
                (void)setsockopt(accepted, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
                identities[accepted] = identity_of(name, client);
                watch(poll, EPOLL_CTL_ADD, accepted, EPOLLIN, static_cast<uint64_t>(accepted));
            }
        }
    }
}

// ---- client

struct Flow {
    int descriptor = -1;
    bool is_stream = false, is_fast = false;
    bool is_open = false;    // connected
    bool is_broken = false;  // after the mark
    bool has_changed = false;
    char answered = 0;  // epoch of the last answer
    std::string identity, partial;
    Clock::time_point last_answer;
};

// Flows that send in turn, each once in `period`. Turns that a busy machine has missed are not made up for.
struct Turns {
    std::vector<size_t> flows;
    microseconds period;
    size_t next = 0;
    Clock::time_point due;

    [[nodiscard]] microseconds step() const {
        return period / static_cast<long>(std::max<size_t>(1, flows.size()));
    }
};

class Client {
 public:
    Client(const sockaddr_in& server, size_t tcp, size_t udp, size_t fast, milliseconds fast_period,
           milliseconds slow_period)
        : server_(server), flows_(tcp + udp) {
        poll_ = checked(epoll_create1(0), "epoll_create1");
        turns_[0].period = fast_period;
        turns_[1].period = slow_period;
        for (size_t i = 0; i < flows_.size(); i++) {
            flows_[i].is_stream = i < tcp;
            flows_[i].is_fast = (i < tcp ? i : i - tcp) < fast;
            turns_[flows_[i].is_fast ? 0 : 1].flows.push_back(i);
            to_open_.push_back(flows_.size() - 1 - i);
        }
        checked(fcntl(STDIN_FILENO, F_SETFL, O_NONBLOCK), "fcntl");
        watch(poll_, EPOLL_CTL_ADD, STDIN_FILENO, EPOLLIN, kCommands);
    }

    // Until the standard input ends.
    void run() {
        for (Turns& turns : turns_) {
            turns.due = Clock::now();
        }
        while (!is_ended_) {
            const Clock::time_point now = Clock::now();
            open_some(now);
            for (Turns& turns : turns_) {
                send_due(turns, now);
            }
            epoll_event events[kEventsMax];
            const int count = epoll_wait(poll_, events, kEventsMax, 1);
            for (int i = 0; i < count; i++) {
                if (events[i].data.u64 == kCommands) {
                    take_commands();
                } else {
                    take(static_cast<size_t>(events[i].data.u64), events[i].events);
                }
            }
        }
    }

 private:
    static constexpr uint64_t kCommands = UINT64_MAX;

    void open_some(Clock::time_point now) {
        while (!to_open_.empty() && opening_ < kOpeningMax && now >= open_after_) {
            const size_t number = to_open_.back();
            Flow& flow = flows_[number];
            flow.descriptor = checked(
                socket(AF_INET, (flow.is_stream ? SOCK_STREAM : SOCK_DGRAM) | SOCK_NONBLOCK, 0), "socket");
            const int on = 1;
            if (flow.is_stream) {
                checked(setsockopt(flow.descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)),
                        "TCP_NODELAY");
            }
            if (connect(flow.descriptor, reinterpret_cast<const sockaddr*>(&server_), sizeof(server_)) != 0 &&
                errno != EINPROGRESS) {
                // No route for a moment, for example.
                close(flow.descriptor);
                flow.descriptor = -1;
                failures_++;
                open_after_ = now + kReopenAfter;
                return;
            }
            to_open_.pop_back();
            flow.is_open = !flow.is_stream;
            opening_ += flow.is_stream ? 1 : 0;
            watch(poll_, EPOLL_CTL_ADD, flow.descriptor, flow.is_open ? EPOLLIN : EPOLLOUT, number);
        }
    }

    void send_due(Turns& turns, Clock::time_point now) {
        if (turns.flows.empty()) {
            return;
        }
        turns.due = std::max(turns.due, now - milliseconds(20));
        for (; turns.due <= now;
             turns.due += turns.step(), turns.next = (turns.next + 1) % turns.flows.size()) {
            const size_t number = turns.flows[turns.next];
            Flow& flow = flows_[number];
            if (flow.is_open && send(flow.descriptor, &epoch_, 1, MSG_NOSIGNAL) < 0) {
                failed(number, errno);
            }
        }
    }

    void take(size_t number, uint32_t events) {
        Flow& flow = flows_[number];
        if (!flow.is_open && flow.is_stream) {
            opening_--;
            int error = 0;
            socklen_t size = sizeof(error);
            checked(getsockopt(flow.descriptor, SOL_SOCKET, SO_ERROR, &error, &size), "SO_ERROR");
            if (error != 0 || (events & EPOLLOUT) == 0) {
                end(number, error != 0 ? error : ECONNABORTED);
                return;
            }
            flow.is_open = true;
            watch(poll_, EPOLL_CTL_MOD, flow.descriptor, EPOLLIN, number);
            return;
        }
        char received[4096];
        const ssize_t size = recv(flow.descriptor, received, sizeof(received), MSG_DONTWAIT);
        if (size < 0 || (size == 0 && flow.is_stream)) {
            failed(number, size < 0 ? errno : ECONNABORTED);
            return;
        }
        flow.partial.append(received, static_cast<size_t>(size));
        for (size_t end; (end = flow.partial.find('\n')) != std::string::npos;
             flow.partial.erase(0, end + 1)) {
            if (end > 0) {
                answer(flow, flow.partial[0], std::string_view(flow.partial).substr(1, end - 1));
            }
        }
        if (flow.partial.empty()) {
            flow.partial.shrink_to_fit();
        }
    }

    void answer(Flow& flow, char epoch, std::string_view identity) {
        const Clock::time_point now = Clock::now();
        if (flow.identity != identity) {
            flow.has_changed = flow.has_changed || (is_marked_ && !flow.identity.empty());
            flow.identity = identity;
        }
        flow.answered = epoch;
        if (is_marked_) {
            longest_any_ = std::max(longest_any_, now - last_answer_);
            if (flow.is_fast) {
                Clock::duration& longest = flow.is_stream ? longest_stream_ : longest_datagram_;
                longest = std::max(longest, now - std::max(flow.last_answer, marked_));
            }
        }
        last_answer_ = flow.last_answer = now;
    }

    // An ICMP error on a datagram socket does not end the flow.
    void failed(size_t number, int error) {
        Flow& flow = flows_[number];
        if (flow.is_stream && error != EAGAIN && error != EINTR) {
            end(number, error);
        }
    }

    void end(size_t number, int error) {
        Flow& flow = flows_[number];
        watch(poll_, EPOLL_CTL_DEL, flow.descriptor, 0, 0);
        close(flow.descriptor);
        if (is_marked_) {
            flow.is_open = false;
            flow.is_broken = true;
            findings_[std::strerror(error)]++;
            return;
        }
        failures_++;
        Flow again;
        again.is_stream = flow.is_stream;
        again.is_fast = flow.is_fast;
        flow = again;
        to_open_.push_back(number);
        open_after_ = Clock::now() + kReopenAfter;
    }

    void take_commands() {
        char received[256];
        ssize_t size;
        while ((size = read(STDIN_FILENO, received, sizeof(received))) > 0) {
            commands_.append(received, static_cast<size_t>(size));
        }
        is_ended_ = size == 0;
        for (size_t end; (end = commands_.find('\n')) != std::string::npos; commands_.erase(0, end + 1)) {
            const std::string_view command = std::string_view(commands_).substr(0, end);
            if (command == "epoch") {
                epoch_ = epoch_ == 'z' ? 'a' : static_cast<char>(epoch_ + 1);
            } else if (command == "mark") {
                is_marked_ = true;
                marked_ = last_answer_ = Clock::now();
                longest_any_ = longest_stream_ = longest_datagram_ = {};
            } else if (command != "report") {
                std::fprintf(stderr, "unknown command\n");
                std::exit(1);
            }
            report();
        }
    }

    void report() {
        const auto count = [this](auto&& is_counted) {
            return static_cast<size_t>(std::count_if(flows_.begin(), flows_.end(), is_counted));
        };
        const auto us = [](Clock::duration time) {
            return static_cast<long long>(std::chrono::duration_cast<microseconds>(time).count());
        };
        std::string findings;
        for (const auto& [text, number] : findings_) {
            findings += (findings.empty() ? "\"" : ",\"") + text + "\":" + std::to_string(number);
        }
        if (const size_t changed = count([](const Flow& flow) { return flow.has_changed; }); changed > 0) {
            findings += (findings.empty() ? "\"" : ",\"") + std::string("answered as another flow\":") +
                        std::to_string(changed);
        }
        std::printf(
            "{\"flows\":%zu,\"answered\":%zu,\"broken\":%zu,\"failures\":%zu,\"gap_us\":%lld,"
            "\"tcp_gap_us\":%lld,\"udp_gap_us\":%lld,\"findings\":{%s}}\n",
            flows_.size(),
            count([this](const Flow& flow) { return flow.is_open && flow.answered == epoch_; }),
            count([](const Flow& flow) { return flow.is_broken; }), failures_, us(longest_any_),
            us(longest_stream_), us(longest_datagram_), findings.c_str());
        std::fflush(stdout);
    }

    sockaddr_in server_;
    int poll_ = -1;
    std::vector<Flow> flows_;
    Turns turns_[2];
    std::vector<size_t> to_open_;
    size_t opening_ = 0;
    Clock::time_point open_after_;
    size_t failures_ = 0;  // connections that failed, or flows that broke, before the mark
    char epoch_ = 'a';
    bool is_marked_ = false, is_ended_ = false;
    Clock::time_point marked_, last_answer_;
    Clock::duration longest_any_{}, longest_stream_{}, longest_datagram_{};
    std::map<std::string, size_t> findings_;
    std::string commands_;
};

}  // namespace

int main(int argument_count, char** arguments) {
    allow_descriptors();
    const auto number = [arguments](int i) { return std::strtoul(arguments[i], nullptr, 10); };
    if (argument_count == 4 && std::string_view(arguments[1]) == "serve") {
        serve(arguments[2], static_cast<uint16_t>(number(3)));
    }
    sockaddr_in server{};
    server.sin_family = AF_INET;
    if (argument_count != 9 || std::string_view(arguments[1]) != "client" ||
        inet_pton(AF_INET, arguments[2], &server.sin_addr) != 1) {
        std::fprintf(
            stderr,
            "usage: share-flows serve NAME PORT | client ADDRESS PORT TCP UDP FAST FAST_MS SLOW_MS\n");
        return 2;
    }
    server.sin_port = htons(static_cast<uint16_t>(number(3)));
    Client(server, number(4), number(5), number(6), milliseconds(number(7)), milliseconds(number(8))).run();
    return 0;
}
