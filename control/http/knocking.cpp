#include "control/http/knocking.hpp"

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <stop_token>
#include <utility>

namespace penstock::http {
namespace {

// To 0.0.0.0 or ::, which a server may listen on, Linux connects as to loopback.
void knock(const std::string& host, uint16_t port) {
    addrinfo wanted{};
    wanted.ai_socktype = SOCK_STREAM;
    wanted.ai_flags = AI_NUMERICSERV;
    addrinfo* found = nullptr;
    if (::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &wanted, &found) != 0) {
        return;
    }
    const int fd = ::socket(found->ai_family, found->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0) {
        static_cast<void>(::connect(fd, found->ai_addr, found->ai_addrlen));
        ::close(fd);
    }
    ::freeaddrinfo(found);
}

}  // namespace

Knocking::Knocking(std::string host, uint16_t port)
    : thread_([host = std::move(host), port](const std::stop_token& stopped) {
          while (!stopped.stop_requested()) {
              knock(host, port);
              std::this_thread::sleep_for(std::chrono::milliseconds(20));
          }
      }) {}

}  // namespace penstock::http
