// SPDX-License-Identifier: Apache-2.0
// An API server with a negligible cost: it answers lists and watches of a generated cluster over plain
// HTTP/1.1 on loopback, so that penstock-sync and penstockd dominate the measurement. It behaves as current
// servers do for a correct client (chunked lists, streaming lists, watches with bookmarks), and accepts
// Events without storing them.
//
//   api_server SERVICES ENDPOINTS [FILE]
//
//   FILE: further objects, one per line: "services", "slices" or "nodes", a blank, and JSON.
//   Prints {"port": N}. Then each line of stdin is a command; each answer is a line of JSON:
//     flip COUNT PER_SECOND    changes one endpoint of a slice COUNT times, slices in turn, at an even pace;
//                              PER_SECOND 0: all at once
//     quit
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "perf/sync/cluster.hpp"

namespace penstock::perf {
namespace {

using Clock = std::chrono::steady_clock;

struct Connection {
    int descriptor = -1;
    std::string in;
    std::string out;
    size_t sent = 0;
    std::optional<Collection> watches;
    // The next object of a list that is still being streamed, so that the buffer stays small.
    std::optional<uint32_t> initial_next;
};

// A parameter of the query, unchanged; "" if it is absent.
std::string_view parameter(std::string_view target, std::string_view name) {
    size_t at = target.find('?');
    while (at != std::string_view::npos) {
        std::string_view pair = target.substr(at + 1, target.find('&', at + 1) - at - 1);
        if (pair.starts_with(name) && pair.substr(name.size()).starts_with('=')) {
            return pair.substr(name.size() + 1);
        }
        at = target.find('&', at + 1);
    }
    return "";
}

bool is_true(std::string_view value) {
    return value == "1" || value == "true";
}

uint32_t number(std::string_view text, uint32_t otherwise) {
    uint32_t value = otherwise;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
}

std::optional<Collection> collection_of(std::string_view path) {
    if (path == "/api/v1/services") {
        return Collection::Services;
    }
    if (path == "/apis/discovery.k8s.io/v1/endpointslices") {
        return Collection::Slices;
    }
    return path == "/api/v1/nodes" ? std::optional(Collection::Nodes) : std::nullopt;
}

void answer(Connection& connection, int status, std::string_view body) {
    connection.out += "HTTP/1.1 " + std::to_string(status) + (status < 300 ? " OK" : " Error") +
                      "\r\nContent-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) +
                      "\r\n\r\n";
    connection.out += body;
}

void chunk(Connection& connection, std::string_view body) {
    char size[20];
    std::snprintf(size, sizeof size, "%zx\r\n", body.size());
    ((connection.out += size) += body) += "\r\n";
}

constexpr size_t kOutMax = 1 << 20;

class Server {
 public:
    explicit Server(Cluster cluster) : cluster_(std::move(cluster)) {
        listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        sockaddr_in here{
            .sin_family = AF_INET, .sin_port = 0, .sin_addr = {htonl(INADDR_LOOPBACK)}, .sin_zero = {}};
        socklen_t size = sizeof here;
        if (listener_ < 0 || ::bind(listener_, reinterpret_cast<sockaddr*>(&here), size) != 0 ||
            ::listen(listener_, 16) != 0 ||
            ::getsockname(listener_, reinterpret_cast<sockaddr*>(&here), &size) != 0) {
            std::perror("api_server");
            std::exit(1);
        }
        std::printf("{\"port\": %u}\n", ntohs(here.sin_port));
        std::fflush(stdout);
    }

    // Returns on the quit command, or at the end of stdin.
    void run() {
        while (!quit_) {
            std::vector<pollfd> waiting{{STDIN_FILENO, POLLIN, 0}, {listener_, POLLIN, 0}};
            for (const Connection& connection : connections_) {
                const bool has_more = connection.sent < connection.out.size() || connection.initial_next;
                waiting.push_back(
                    {connection.descriptor, static_cast<short>(has_more ? POLLIN | POLLOUT : POLLIN), 0});
            }
            ::poll(waiting.data(), waiting.size(), flips_left_ > 0 ? 1 : -1);
            size_t i = 2;
            for (auto connection = connections_.begin(); connection != connections_.end(); ++i) {
                const bool stays =
                    (waiting[i].revents & (POLLIN | POLLHUP | POLLERR)) == 0 || receive(*connection);
                if (!stays || !send(*connection)) {
                    ::close(connection->descriptor);
                    connection = connections_.erase(connection);
                } else {
                    ++connection;
                }
            }
            if ((waiting[1].revents & POLLIN) != 0) {
                const int descriptor = ::accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
                if (descriptor >= 0) {
                    const int on = 1;
                    ::setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
                    connections_.emplace_back().descriptor = descriptor;
                }
            }
            if (waiting[0].revents != 0) {
                obey();
            }
            flip();
        }
    }

 private:
    void obey() {
        std::string line;
        if (!std::getline(std::cin, line) || line == "quit") {
            quit_ = true;
        } else if (unsigned count = 0, rate = 0;
                   std::sscanf(line.c_str(), "flip %u %u", &count, &rate) == 2) {
            flips_left_ = flips_asked_ = count;
            per_second_ = rate;
            flips_began_ = Clock::now();
        }
    }

    void flip() {
        if (flips_left_ == 0) {
            return;
        }
        const double passed = std::chrono::duration<double>(Clock::now() - flips_began_).count();
        const uint32_t due = per_second_ == 0
                                 ? flips_asked_
                                 : std::min(flips_asked_, static_cast<uint32_t>(passed * per_second_) + 1);
        for (; flips_asked_ - flips_left_ < due; --flips_left_) {
            const uint32_t slice = next_slice_++ % cluster_.flippable();
            cluster_.flip(slice);
            const std::string event =
                R"({"type":"MODIFIED","object":)" + cluster_.object(Collection::Slices, slice) + "}\n";
            for (Connection& connection : connections_) {
                if (connection.watches == Collection::Slices && !connection.initial_next) {
                    chunk(connection, event);
                }
            }
        }
        for (Connection& connection : connections_) {
            send(connection);
        }
        if (flips_left_ == 0) {
            std::printf("{\"flipped\": %u, \"seconds\": %.3f}\n", flips_asked_,
                        std::chrono::duration<double>(Clock::now() - flips_began_).count());
            std::fflush(stdout);
        }
    }

    // False if the client has disconnected.
    bool receive(Connection& connection) {
        char bytes[16384];
        const ssize_t got = ::recv(connection.descriptor, bytes, sizeof bytes, 0);
        if (got <= 0) {
            return got < 0 && (errno == EAGAIN || errno == EINTR);
        }
        connection.in.append(bytes, static_cast<size_t>(got));
        for (;;) {
            const size_t head_end = connection.in.find("\r\n\r\n");
            if (head_end == std::string::npos) {
                return true;
            }
            const std::string_view head = std::string_view(connection.in).substr(0, head_end);
            size_t body = 0;
            if (const size_t at = head.find("Content-Length: "); at != std::string_view::npos) {
                body = number(head.substr(at + 16), 0);
            }
            if (connection.in.size() < head_end + 4 + body) {
                return true;
            }
            const size_t space = head.find(' ');
            serve(connection, head.substr(0, space),
                  head.substr(space + 1, head.find(' ', space + 1) - space - 1));
            connection.in.erase(0, head_end + 4 + body);
        }
    }

    void serve(Connection& connection, std::string_view method, std::string_view target) {
        const std::string_view path = target.substr(0, target.find('?'));
        const auto collection = collection_of(path);
        if (method != "GET") {
            answer(connection, 201,
                   R"({"kind":"Event","apiVersion":"v1","metadata":{"name":"event","resourceVersion":"1"}})");
        } else if (path == "/apis/discovery.k8s.io/v1") {
            answer(
                connection, 200,
                R"({"kind":"APIResourceList","apiVersion":"v1","groupVersion":"discovery.k8s.io/v1","resources":[{"name":"endpointslices",)"
                R"("singularName":"endpointslice","namespaced":true,"kind":"EndpointSlice","verbs":["get","list","watch"]}]})");
        } else if (!collection) {
            answer(
                connection, 404,
                R"({"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404})");
        } else if (is_true(parameter(target, "watch"))) {
            connection.out +=
                "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
            connection.watches = collection;
            if (is_true(parameter(target, "sendInitialEvents"))) {
                connection.initial_next = 0;
            }
        } else {
            list(connection, *collection, number(parameter(target, "limit"), UINT32_MAX),
                 number(parameter(target, "continue"), 0));
        }
    }

    void list(Connection& connection, Collection collection, uint32_t limit, uint32_t from) {
        const uint32_t size = cluster_.size(collection);
        const uint32_t until = limit < size - std::min(from, size) ? from + limit : size;
        std::string body = std::string(R"({"kind":")") + Cluster::list_kind(collection) +
                           R"(","apiVersion":")" + Cluster::api_version(collection) +
                           R"(","metadata":{"resourceVersion":")" + std::to_string(cluster_.version()) + '"';
        if (until < size) {
            body += R"(,"continue":")" + std::to_string(until) + R"(","remainingItemCount":)" +
                    std::to_string(size - until);
        }
        body += R"(},"items":[)";
        for (uint32_t i = from; i < until; ++i) {
            if (i != from) {
                body += ',';
            }
            body += cluster_.object(collection, i);
        }
        answer(connection, 200, body + "]}");
    }

    // The next objects of a streaming list, and the bookmark that ends it.
    void stream_initial(Connection& connection) {
        const Collection collection = *connection.watches;
        while (connection.initial_next && connection.out.size() - connection.sent < kOutMax) {
            if (*connection.initial_next < cluster_.size(collection)) {
                chunk(connection, R"({"type":"ADDED","object":)" +
                                      cluster_.object(collection, (*connection.initial_next)++) + "}\n");
                continue;
            }
            const std::string kind(Cluster::list_kind(collection));
            chunk(connection, R"({"type":"BOOKMARK","object":{"kind":")" + kind.substr(0, kind.size() - 4) +
                                  R"(","apiVersion":")" + Cluster::api_version(collection) +
                                  R"(","metadata":{"resourceVersion":")" +
                                  std::to_string(cluster_.version()) +
                                  R"(","annotations":{"k8s.io/initial-events-end":"true"}}}})" + "\n");
            connection.initial_next.reset();
        }
    }

    // False if the client has disconnected.
    bool send(Connection& connection) {
        do {
            if (connection.initial_next) {
                stream_initial(connection);
            }
            const ssize_t took = ::send(connection.descriptor, connection.out.data() + connection.sent,
                                        connection.out.size() - connection.sent, MSG_NOSIGNAL);
            if (took < 0) {
                return errno == EAGAIN || errno == EINTR;
            }
            connection.sent += static_cast<size_t>(took);
            if (connection.sent == connection.out.size()) {
                connection.out.clear();
                connection.sent = 0;
            }
        } while (connection.sent < connection.out.size() || connection.initial_next);
        return true;
    }

    Cluster cluster_;
    int listener_;
    std::list<Connection> connections_;
    bool quit_ = false;
    uint32_t flips_left_ = 0;
    uint32_t flips_asked_ = 0;
    uint32_t per_second_ = 0;
    uint32_t next_slice_ = 0;
    Clock::time_point flips_began_;
};

}  // namespace
}  // namespace penstock::perf

int main(int argc, char** argv) {
    using namespace penstock::perf;
    if (argc != 3 && argc != 4) {
        std::fputs("api_server SERVICES ENDPOINTS [FILE]\n", stderr);
        return 2;
    }
    Cluster cluster(static_cast<uint32_t>(std::strtoul(argv[1], nullptr, 10)),
                    static_cast<uint32_t>(std::strtoul(argv[2], nullptr, 10)));
    if (argc == 4) {
        std::ifstream file(argv[3]);
        for (std::string line; std::getline(file, line);) {
            const Collection collection = line[0] == 'n'
                                              ? Collection::Nodes
                                              : (line[1] == 'e' ? Collection::Services : Collection::Slices);
            cluster.add(collection, line.substr(line.find(' ') + 1));
        }
    }
    Server(std::move(cluster)).run();
}
