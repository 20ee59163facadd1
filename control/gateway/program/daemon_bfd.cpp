// SPDX-License-Identifier: Apache-2.0
// BFD sessions of the workers (control/bfd).
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "control/gateway/program/daemon.hpp"
#include "control/gateway/upgrade/bfd_notes.hpp"

namespace penstock::gateway {

// Before the workers run, so that a successor's first round sends for the sessions of its former process.
void Daemon::open_bfd() {
    Descriptor connection = handover_.take_connection();  // without --bfd, bfdd runs its sessions again
    if (options_.bfd.empty()) {
        return;
    }
    bfd::FrrLink::Options link{.path = options_.bfd,
                               .engine = workers_->bfd(),
                               .twins = [this] { return bfd_twins(); },
                               .forwards = [this] { return loops_forward_.load(std::memory_order_relaxed); },
                               .former = {}};
    if (const v1::UpgradeNote& former = handover_.former(); former.has_bfd()) {
        const auto port_of = [this](const std::string& twin) {
            const auto found = std::ranges::find(options_.ports, twin, &PortOption::twin);
            return found == options_.ports.end()
                       ? NicPortId{}
                       : NicPortId{static_cast<uint8_t>(found - options_.ports.begin())};
        };
        link.former = {.socket = std::move(connection),
                       .version = static_cast<uint8_t>(former.bfd().protocol_version()),
                       .sessions = kept_of(former.bfd(), port_of)};
    }
    bfd_ = std::make_unique<bfd::FrrLink>(std::move(link));
}

// On the thread of bfd_. The addresses are those that the twins have now.
std::vector<bfd::Twin> Daemon::bfd_twins() const {
    std::vector<bfd::Twin> twins;
    for (const PortOption& port : options_.ports) {
        twins.push_back({port.twin, NicPortId{static_cast<uint8_t>(twins.size())}, {}});
    }
    const config::Snapshot now = workers_->current();
    for (const route::LocalAddress& local : now.routes->addresses()) {
        if (local.port.value < twins.size()) {
            twins[local.port.value].subnets.push_back({local.address, local.prefix_length});
        }
    }
    return twins;
}

}  // namespace penstock::gateway
