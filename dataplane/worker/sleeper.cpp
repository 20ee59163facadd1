// SPDX-License-Identifier: Apache-2.0
#include "dataplane/worker/sleeper.hpp"

#include <rte_ethdev.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <ctime>

namespace penstock::worker {

template <typename Each>
void Sleeper::for_each_queue(Each each) const noexcept {
    for (uint32_t p = 0; p < io_.ports; ++p) {
        const pipeline::PortIo& port = io_.port[p];
        for (uint16_t queue = port.first_rx_queue; !port.removed && queue < port.rx_queues;
             queue = static_cast<uint16_t>(queue + port.rx_queue_step)) {
            each(port.dpdk_port, queue);
        }
    }
}

bool Sleeper::can_be_interrupted(const pipeline::WorkerIo& io) noexcept {
    uint32_t queues = 0;
    for (uint32_t p = 0; p < io.ports; ++p) {
        const pipeline::PortIo& port = io.port[p];
        if (port.first_rx_queue < port.rx_queues) {
            if (!port.rx_interrupts) {
                return false;
            }
            ++queues;
        }
    }
    return queues > 0;
}

Sleeper::~Sleeper() {
    if (epoll_ >= 0) {
        close(epoll_);
    }
}

void Sleeper::prepare(bool interrupted) noexcept {
    // By default Linux ends a thread's sleep up to 50 us late, to end several sleeps at once; 1 ns is the
    // most exact setting.
    prctl(PR_SET_TIMERSLACK, 1);
    if (!interrupted) {
        return;
    }
    epoll_ = epoll_create1(EPOLL_CLOEXEC);
    bool complete = epoll_ >= 0;
    for_each_queue([&](uint16_t port, uint16_t queue) {
        // Edge-triggered, so that the descriptors need not be read: some are eventfds that would stay
        // readable, others (net_tap) hold the packets themselves.
        epoll_event event{};
        event.events = EPOLLIN | EPOLLET;
        const int fd = rte_eth_dev_rx_intr_ctl_q_get_fd(port, queue);
        complete = complete && fd >= 0 && epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event) == 0;
    });
    if (!complete && epoll_ >= 0) {
        close(epoll_);
        epoll_ = -1;
    }
}

void Sleeper::arm() noexcept {
    if (epoll_ >= 0) {
        // If a PMD has no such switch (net_tap), interrupts are always on.
        for_each_queue([](uint16_t port, uint16_t queue) { rte_eth_dev_rx_intr_enable(port, queue); });
    }
    armed_ = true;
}

void Sleeper::disarm() noexcept {
    if (epoll_ >= 0) {
        for_each_queue([](uint16_t port, uint16_t queue) { rte_eth_dev_rx_intr_disable(port, queue); });
    }
    armed_ = false;
}

void Sleeper::sleep(TscTicks length, TscRate rate) noexcept {
    // Always below one second: the longest sleep of IdleWatch is a millisecond.
    const timespec limit{0, static_cast<long>(length.value * 1'000 / (rate.hz / 1'000'000))};
    if (epoll_ >= 0) {
        epoll_event event;
        epoll_pwait2(epoll_, &event, 1, &limit, nullptr);
    } else {
        nanosleep(&limit, nullptr);
    }
}

}  // namespace penstock::worker
