// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/program/port_follower.hpp"

#include <utility>

#include "control/log/log.hpp"

namespace penstock::gateway {
namespace {

// Polling interval for links and devices of PMDs that do not report changes: half the time in which VIPs must
// leave a lost link (PRESENCE-002). It costs a few system calls.
constexpr auto kPortLook = std::chrono::milliseconds(25);

}  // namespace

PortFollower::PortFollower(worker::WorkerSet& workers, FlowFollower& flows, Ports ports, Twins twins,
                           std::function<void()> changed)
    : workers_(workers), flows_(flows), ports_(ports), twins_(twins), changed_(std::move(changed)) {
    for (const auto& port : ports) {
        was_up_.push_back(port->link_up());
        links_.emplace_back(was_up_.back());
    }
}

void PortFollower::follow(LinkReport::Time now) {
    const bool is_time = now >= next_look_;
    if (is_time) {
        next_look_ = now + kPortLook;
    }
    std::erase_if(leaving_, [this](const auto& entry) {
        const bool is_over = workers_.has_passed(entry.second);
        if (is_over) {
            close(entry.first);
        }
        return is_over;
    });
    for (size_t i = 0; i < ports_.size(); ++i) {
        drivers::NicPort& port = *ports_[i];
        if (port.is_removed() || leaving_.contains(i) || (!port.take_link_change() && !is_time)) {
            continue;
        }
        if (port.is_gone()) {
            give_up(i);
            continue;
        }
        const bool up = port.link_up();
        twins_[i]->set_carrier(up);
        if (was_up_[i] != up) {
            was_up_[i] = up;
            changed_();
        }
        if (const std::string text = links_[i].look(up, now); !text.empty()) {
            auto& logger = log::get("drivers");
            logger.log(up ? spdlog::level::info : spdlog::level::warn, "port {} ({}): {}", i,
                       port.facts().name, text);
        }
    }
}

// Detaches from the workers first, then from Linux, then removes the rules and the device. Waiting for the
// workers must not block this thread, which moves the other twins' frames: a worker may be stuck in this
// device's PMD.
void PortFollower::give_up(size_t port) {
    const auto& facts = ports_[port]->facts();
    log::get("drivers").error(
        "port {} ({}): the device is gone; packets that would leave by it are dropped as port_removed, other "
        "ports continue. A restart attaches the device again",
        port, facts.name);
    leaving_.emplace(port, workers_.detach(facts.id));
    twins_[port]->set_down();
    changed_();
}

void PortFollower::close(size_t port) {
    flows_.port_is_gone(ports_[port]->facts().id);
    ports_[port]->remove();
}

}  // namespace penstock::gateway
