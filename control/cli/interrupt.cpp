// SPDX-License-Identifier: Apache-2.0
#include "control/cli/interrupt.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <utility>

namespace penstock::cli {
namespace {

constexpr std::array kSignals{SIGINT, SIGTERM};
int interrupt_fd = -1;
std::array<struct sigaction, kSignals.size()> former;

void add_one(int fd) noexcept {
    const uint64_t one = 1;
    // Fails only if the counter is at its maximum: the descriptor is readable then.
    [[maybe_unused]] const auto written = ::write(fd, &one, sizeof one);
}

}  // namespace

Interrupt::Interrupt() {
    interrupt_fd = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    struct sigaction action{};
    action.sa_handler = [](int) { add_one(interrupt_fd); };
    action.sa_flags = SA_RESTART;
    for (size_t i = 0; i < kSignals.size(); ++i) {
        ::sigaction(kSignals[i], &action, &former[i]);
    }
}

Interrupt::~Interrupt() {
    for (size_t i = 0; i < kSignals.size(); ++i) {
        ::sigaction(kSignals[i], &former[i], nullptr);
    }
    ::close(std::exchange(interrupt_fd, -1));
}

int Interrupt::fd() const noexcept {
    return interrupt_fd;
}

ReadableWatch::ReadableWatch(int fd, std::function<void()> act)
    : end_(::eventfd(0, EFD_CLOEXEC)), thread_([fd, act = std::move(act), end = end_] {
          std::array<pollfd, 2> waits{{{fd, POLLIN, 0}, {end, POLLIN, 0}}};
          while (::poll(waits.data(), waits.size(), -1) < 0) {
          }
          if (waits[1].revents == 0) {
              act();
          }
      }) {}

ReadableWatch::~ReadableWatch() {
    add_one(end_);
    thread_.join();
    ::close(end_);
}

}  // namespace penstock::cli
