// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/upgrade/handover.hpp"

#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <sys/ioctl.h>

#include <cstdlib>
#include <string>
#include <utility>

#include "control/log/log.hpp"

namespace penstock::gateway {

Handover Handover::inherit() {
    Handover handover;
    if (const char* const number = std::getenv(kUpgradeSocketVariable); number != nullptr) {
        handover.socket_ = Descriptor(std::atoi(number));
        handover.is_successor_ = std::getenv(kUpgradeSuccessorVariable) != nullptr;
        fcntl(handover.socket_.get(), F_SETFD, FD_CLOEXEC);
    }
    unsetenv(kUpgradeSocketVariable);
    unsetenv(kUpgradeSuccessorVariable);
    return handover;
}

Status Handover::await_take_over() {
    send(UpgradeMessage::Prepared);
    for (;;) {
        auto received = receive_message(socket_.get());
        if (!received) {
            return fail(Errc::Unavailable, "upgrade: the supervisor has ended");
        }
        if (received->message == UpgradeMessage::TakeOver) {
            twins_ = std::move(received->descriptors);
            return {};
        }
    }
}

Descriptor Handover::take_twin(const std::string& name) {
    for (Descriptor& twin : twins_) {
        ifreq facts{};
        if (twin.is_open() && ioctl(twin.get(), TUNGETIFF, &facts) == 0 && name == facts.ifr_name) {
            return std::move(twin);
        }
    }
    return Descriptor();
}

bool Handover::must_hand_over() {
    if (!is_supervised() || must_hand_over_) {
        return must_hand_over_;
    }
    fcntl(socket_.get(), F_SETFL, O_NONBLOCK);
    if (const auto received = receive_message(socket_.get())) {
        must_hand_over_ = received->message == UpgradeMessage::HandOver;
    }
    return must_hand_over_;
}

void Handover::send(UpgradeMessage message, std::span<const int> descriptors) {
    if (!is_supervised()) {
        return;
    }
    if (auto sent = send_message(socket_.get(), message, descriptors); !sent) {
        log::get("control").warn("{}", sent.error().what);
    }
}

}  // namespace penstock::gateway
