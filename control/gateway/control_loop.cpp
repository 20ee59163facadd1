#include "control/gateway/control_loop.hpp"

#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "control/gateway/port_follower.hpp"
#include "control/log/log.hpp"

namespace penstock::gateway {
namespace {

constexpr int kSleepMaxMs = 10;  // TwinIo sleeps 2 ms at most; this only bounds a change of its mind
constexpr auto kHousekeeping = std::chrono::seconds(1);
// Resolutions handed on in one round; the rest waits in the workers' ring for the next, a few milliseconds later.
constexpr int kResolutionsPerRound = 256;

}  // namespace

Result<StopSignals> StopSignals::block() {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    if (pthread_sigmask(SIG_BLOCK, &set, nullptr) != 0) {
        return fail(Errc::Internal, "signals cannot be blocked");
    }
    std::signal(SIGPIPE, SIG_IGN);  // a client that hangs up is an error of a write, not the end of the gateway
    const int fd = ::signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    if (fd < 0) {
        return fail(Errc::Internal, std::string("signalfd: ") + std::strerror(errno));
    }
    return StopSignals(fd);
}

StopSignals::~StopSignals() {
    if (fd_ >= 0) {
        ::close(fd_);
    }
}

int StopSignals::take() noexcept {
    signalfd_siginfo info{};
    return ::read(fd_, &info, sizeof(info)) == static_cast<ssize_t>(sizeof(info)) ? static_cast<int>(info.ssi_signo) : 0;
}

int ControlLoop::run() {
    auto next_housekeeping = Clock::now();
    PortFollower followed(workers, flows, ports, twins);
    for (;;) {
        twin_io.poll_once(kSleepMaxMs);
        rounds.fetch_add(1, std::memory_order_relaxed);
        if (const int signal = signals.take(); signal != 0) {
            return signal;
        }
        const auto now = Clock::now();
        for (int i = 0; i < kResolutionsPerRound; ++i) {
            const auto request = workers.take_neighbour_request();
            if (!request) {
                break;
            }
            linux_follower.resolve(*request);
        }
        followed.follow(now);
        if (now >= next_housekeeping) {
            next_housekeeping = now + kHousekeeping;
            workers.sweep_affinity();
        }
    }
}

}  // namespace penstock::gateway
