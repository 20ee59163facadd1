// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/upgrade/handover.hpp"

#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <utility>

#include "control/gateway/upgrade/step_names.hpp"
#include "control/gateway/upgrade/test_stop.hpp"
#include "control/gateway/upgrade/upgrade_record.hpp"
#include "control/log/log.hpp"

namespace penstock::gateway {
namespace {

// The descriptor that a variable names; not open: the variable is not set.
Descriptor inherited(const char* variable) {
    const char* const number = std::getenv(variable);
    Descriptor descriptor(number == nullptr ? -1 : std::atoi(number));
    if (descriptor.is_open()) {
        fcntl(descriptor.get(), F_SETFD, FD_CLOEXEC);
    }
    unsetenv(variable);
    return descriptor;
}

}  // namespace

Handover Handover::inherit() {
    Handover handover;
    handover.socket_ = inherited(kUpgradeSocketVariable);
    handover.log_ = inherited(kUpgradeLogVariable);
    handover.is_successor_ = handover.is_supervised() && std::getenv(kUpgradeSuccessorVariable) != nullptr;
    handover.reports_steps_ = handover.is_successor_;
    unsetenv(kUpgradeSuccessorVariable);
    if (handover.is_successor_ && next_message(handover.fd()) == UpgradeMessage::Memory) {
        if (auto received = receive_message(handover.fd())) {
            handover.memory_ = std::move(*received->note.mutable_memory());
        }
    }
    return handover;
}

void Handover::note_step(const char* name) {
    if (is_supervised()) {
        v1::UpgradeStep& step = *steps_.add_steps();
        step.set_name(name);
        step.set_at_us(monotonic_us(std::chrono::steady_clock::now()));
        stop_for_test(name);
        note_progress();
    }
}

void Handover::note_progress() {
    if (reports_steps_) {
        send(UpgradeMessage::Steps, {});
    }
}

Status Handover::await_take_over(const std::string& version) {
    note_step(step::kPrepared);
    v1::UpgradeNote prepared;
    prepared.set_version(version);
    send(UpgradeMessage::Prepared, std::move(prepared));
    for (;;) {
        auto received = receive_message(socket_.get());
        if (!received) {
            return fail(Errc::Unavailable, "upgrade: the supervisor has ended");
        }
        if (received->message == UpgradeMessage::TakeOver) {
            inherited_ = std::move(received->descriptors);
            former_ = std::move(received->note);
            note_step(step::kTookOver);
            return {};
        }
    }
}

Descriptor Handover::take_twin(const std::string& name) {
    for (Descriptor& twin : inherited_) {
        ifreq facts{};
        if (twin.is_open() && ioctl(twin.get(), TUNGETIFF, &facts) == 0 && name == facts.ifr_name) {
            return std::move(twin);
        }
    }
    return Descriptor();
}

Descriptor Handover::take_connection() {
    for (Descriptor& one : inherited_) {
        int domain = 0;
        socklen_t length = sizeof domain;
        if (one.is_open() && getsockopt(one.get(), SOL_SOCKET, SO_DOMAIN, &domain, &length) == 0 &&
            domain == AF_UNIX) {
            return std::move(one);
        }
    }
    return Descriptor();
}

bool Handover::must_hand_over(UpgradeRequests& requests) {
    if (!is_supervised() || must_hand_over_) {
        return must_hand_over_;
    }
    fcntl(socket_.get(), F_SETFL, O_NONBLOCK);
    while (const auto received = receive_message(socket_.get())) {
        if (received->message == UpgradeMessage::Answer) {
            requests.take_answer(received->note);
        } else if (received->message == UpgradeMessage::Record) {
            requests.take_record(received->note);
        } else if (received->message == UpgradeMessage::HandOver) {
            must_hand_over_ = true;
            steps_.Clear();  // those of its own start, after its last report
            note_step(step::kAskedToHandOver);
        }
    }
    return must_hand_over_;
}

UpgradeRequests::Send Handover::sender() const {
    if (!is_supervised()) {
        return nullptr;
    }
    return [socket = socket_.get()](const v1::UpgradeNote& request) {
        return send_message(socket, UpgradeMessage::Request, request);
    };
}

void Handover::note_forwarding() {
    note_step(step::kServes);
    send(UpgradeMessage::Forwards, {});
    reports_steps_ = false;
    if (log_.is_open()) {
        dup2(log_.get(), STDERR_FILENO);
        log_ = Descriptor();
    }
}

void Handover::keep_twins(std::span<const int> twins, v1::UpgradeMemory memory) {
    v1::UpgradeNote note;
    *note.mutable_memory() = std::move(memory);
    send(UpgradeMessage::Twins, std::move(note), twins);
}

void Handover::note_handed_over(v1::UpgradeNote note, int connection) {
    note_step(step::kHandedOver);
    send(UpgradeMessage::HandedOver, std::move(note),
         std::span(&connection, connection < 0 ? size_t{0} : size_t{1}));
}

void Handover::send(UpgradeMessage message, v1::UpgradeNote note, std::span<const int> descriptors) {
    if (!is_supervised()) {
        return;
    }
    note.mutable_steps()->MergeFrom(std::exchange(steps_, {}).steps());
    if (auto sent = send_message(socket_.get(), message, note, descriptors); !sent) {
        log::get("control").warn("{}", sent.error().what);
    }
}

}  // namespace penstock::gateway
