// SPDX-License-Identifier: Apache-2.0
#include "control/process/signals.hpp"

#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <iterator>

namespace penstock::process {
namespace {

// SIGKILL and SIGSTOP cannot be blocked. SIGCHLD, SIGURG, SIGWINCH and SIGCONT end no process.
constexpr int kDefaultActionKept[] = {SIGSEGV, SIGBUS,  SIGFPE,  SIGILL,  SIGTRAP,  SIGSYS,
                                      SIGABRT, SIGQUIT, SIGKILL, SIGSTOP, SIGTSTP,  SIGTTIN,
                                      SIGTTOU, SIGCONT, SIGCHLD, SIGURG,  SIGWINCH, SIGPIPE};

Signal::Meaning meaning_of(int number) {
    switch (number) {
        case SIGTERM:
        case SIGINT:
            return Signal::Meaning::Stop;
        case SIGHUP:
            return Signal::Meaning::Reload;
        default:
            return Signal::Meaning::Unknown;
    }
}

}  // namespace

std::string Signal::name() const {
    if (const char* name = sigabbrev_np(number); name != nullptr) {
        return std::string("SIG") + name;
    }
    return number >= SIGRTMIN ? "SIGRTMIN+" + std::to_string(number - SIGRTMIN)
                              : "signal " + std::to_string(number);
}

Result<Signals> Signals::block() {
    sigset_t set;
    sigemptyset(&set);
    for (int number = 1; number <= SIGRTMAX; ++number) {
        if (std::ranges::find(kDefaultActionKept, number) == std::end(kDefaultActionKept)) {
            sigaddset(&set, number);  // fails for the two signals reserved by glibc
        }
    }
    if (pthread_sigmask(SIG_BLOCK, &set, nullptr) != 0) {
        return fail(Errc::Internal, "signals cannot be blocked");
    }
    std::signal(SIGPIPE, SIG_IGN);
    // If the program was started by nohup or by a script that ignores SIGHUP, it would not receive the
    // signal: an ignored signal is discarded even if blocked.
    std::signal(SIGHUP, SIG_DFL);
    const int fd = ::signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    if (fd < 0) {
        return fail(Errc::Internal, std::string("signalfd: ") + std::strerror(errno));
    }
    return Signals(fd);
}

Signals::~Signals() {
    if (fd_ >= 0) {
        ::close(fd_);
    }
}

Signal Signals::take() noexcept {
    signalfd_siginfo info{};
    if (::read(fd_, &info, sizeof(info)) != static_cast<ssize_t>(sizeof(info))) {
        return {};
    }
    return {static_cast<int>(info.ssi_signo), meaning_of(static_cast<int>(info.ssi_signo))};
}

}  // namespace penstock::process
