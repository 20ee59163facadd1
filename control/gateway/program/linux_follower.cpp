// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/program/linux_follower.hpp"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>

namespace penstock::gateway {
namespace {

constexpr auto kFollowerHousekeeping = std::chrono::seconds(1);
// Sleep while the mirror keeps a change for its next round.
constexpr auto kNextRound = std::chrono::milliseconds(2);
// A next hop counts as used if a worker sent to it this recently. Linux keeps an entry reachable for 15 to 45
// s, and stale entries usable for another minute. One check per second over the last ten seconds is therefore
// sufficient.
constexpr uint64_t kUsedWithinMs = 10'000;
// As many requests as the mirror holds next hops would be a scan of the link.
constexpr size_t kRequestsMax = 4'096;

}  // namespace

Result<std::unique_ptr<LinuxFollower>> LinuxFollower::start(drivers::NetlinkMirror& mirror,
                                                            const worker::WorkerSet& workers,
                                                            Reconciler& reconciler) {
    const int wake = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (wake < 0) {
        return fail(Errc::Unavailable, std::string("eventfd: ") + std::strerror(errno));
    }
    std::unique_ptr<LinuxFollower> follower(new LinuxFollower(mirror, workers, reconciler, wake));
    follower->thread_ =
        std::jthread([self = follower.get()](const std::stop_token& stop) { self->run(stop); });
    return follower;
}

LinuxFollower::LinuxFollower(drivers::NetlinkMirror& mirror, const worker::WorkerSet& workers,
                             Reconciler& reconciler, int wake)
    : mirror_(mirror), workers_(workers), reconciler_(reconciler), wake_(wake) {}

LinuxFollower::~LinuxFollower() {
    thread_.request_stop();
    ::eventfd_write(wake_, 1);
    if (thread_.joinable()) {
        thread_.join();
    }
    ::close(wake_);
}

void LinuxFollower::resolve(const worker::NeighbourRequest& request) {
    {
        const std::lock_guard lock(mutex_);
        if (requested_.size() == kRequestsMax) {
            return;
        }
        requested_.push_back(request);
    }
    ::eventfd_write(wake_, 1);
}

void LinuxFollower::run(const std::stop_token& stop) {
    ::pthread_setname_np(::pthread_self(), "linux-follower");
    auto next_housekeeping = Clock::now();
    while (!stop.stop_requested()) {
        rounds_.fetch_add(1, std::memory_order_relaxed);
        const auto now = Clock::now();
        hear_linux(now);
        resolve_requested(now);
        if (now >= next_housekeeping) {
            next_housekeeping = now + kFollowerHousekeeping;
            look_after_neighbours(now);
        }
        wait(mirror_.has_changes_waiting() ? now + kNextRound : next_housekeeping);
    }
}

void LinuxFollower::wait(Clock::time_point until) const {
    std::array<pollfd, 2> woken{{{.fd = mirror_.fd(), .events = POLLIN, .revents = 0},
                                 {.fd = wake_, .events = POLLIN, .revents = 0}}};
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
    ::poll(woken.data(), woken.size(),
           static_cast<int>(std::max<std::chrono::milliseconds::rep>(left.count(), 0)));
    eventfd_t ignored = 0;
    ::eventfd_read(wake_, &ignored);
}

void LinuxFollower::hear_linux(Clock::time_point now) {
    const drivers::MirrorChange change = mirror_.poll(now);
    if (change.any()) {
        reconciler_.mirrored(std::make_shared<const drivers::MirroredState>(mirror_.state()),
                             change.forwarding);
    }
}

void LinuxFollower::resolve_requested(Clock::time_point now) {
    std::vector<worker::NeighbourRequest> requested;
    {
        const std::lock_guard lock(mutex_);
        requested.swap(requested_);
    }
    for (const worker::NeighbourRequest& request : requested) {
        mirror_.resolve(request.egress, request.address, now);
    }
}

// The kernel sees no flow traffic, so a busy next hop appears unused to it. Report it as used before the
// kernel removes it.
void LinuxFollower::look_after_neighbours(Clock::time_point now) {
    const worker::Inspector inspector = workers_.inspect();
    for (const route::Neighbour& neighbour : mirror_.state().neighbours) {
        if (neighbour.state == route::NeighbourState::Stale) {
            const auto idle = inspector.neighbour_idle_ms(neighbour.id);
            if (idle && *idle <= kUsedWithinMs) {
                mirror_.confirm(neighbour, now);
            }
        }
    }
}

}  // namespace penstock::gateway
