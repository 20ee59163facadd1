// SPDX-License-Identifier: Apache-2.0
// Both sides of an upgrade as steps of the process (upgrade/handover.hpp), and the locks of its files.
#include <net/if.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <span>
#include <string>
#include <utility>

#include "control/gateway/program/daemon.hpp"
#include "control/gateway/program/port_setup.hpp"
#include "control/gateway/program/version.hpp"
#include "control/gateway/upgrade/bfd_notes.hpp"
#include "control/gateway/upgrade/step_names.hpp"
#include "control/log/log.hpp"

namespace penstock::gateway {
namespace {

constexpr std::array<Daemon::Step, 17> kAlone{&Daemon::catch_signals,
                                              &Daemon::lock_files,
                                              &Daemon::plan_workers,
                                              &Daemon::open_tables,
                                              &Daemon::start_eal,
                                              &Daemon::take_over,
                                              &Daemon::probe_ports,
                                              &Daemon::configure_ports,
                                              &Daemon::open_twins,
                                              &Daemon::open_mirror,
                                              &Daemon::load_last_good,
                                              &Daemon::start_ports,
                                              &Daemon::prepare_workers,
                                              &Daemon::launch_workers,
                                              &Daemon::start_twin_io,
                                              &Daemon::start_reconciler,
                                              &Daemon::serve};
// Everything before take_over() is no part of the pause. Workers do not use twins, so these come last.
constexpr std::array<Daemon::Step, 17> kBeside{
    &Daemon::catch_signals,  &Daemon::plan_workers,    &Daemon::open_tables,   &Daemon::start_eal,
    &Daemon::open_mirror,    &Daemon::load_last_good,  &Daemon::probe_ports,   &Daemon::configure_ports,
    &Daemon::start_ports,    &Daemon::prepare_workers, &Daemon::take_over,     &Daemon::refresh_state,
    &Daemon::launch_workers, &Daemon::open_twins,      &Daemon::start_twin_io, &Daemon::start_reconciler,
    &Daemon::serve};
constexpr std::array<Daemon::Step, 18> kInTurn{
    &Daemon::catch_signals,    &Daemon::plan_workers,   &Daemon::open_tables,     &Daemon::start_eal,
    &Daemon::open_mirror,      &Daemon::load_last_good, &Daemon::probe_ports,     &Daemon::prepare_workers,
    &Daemon::take_over,        &Daemon::refresh_state,  &Daemon::configure_ports, &Daemon::start_ports,
    &Daemon::attach_ports,     &Daemon::launch_workers, &Daemon::open_twins,      &Daemon::start_twin_io,
    &Daemon::start_reconciler, &Daemon::serve};
constexpr std::array<Daemon::Step, 18> kAfter{
    &Daemon::catch_signals,    &Daemon::plan_workers,   &Daemon::open_tables,     &Daemon::start_eal,
    &Daemon::open_mirror,      &Daemon::load_last_good, &Daemon::plan_memory,     &Daemon::take_over,
    &Daemon::refresh_state,    &Daemon::probe_ports,    &Daemon::configure_ports, &Daemon::start_ports,
    &Daemon::attach_ports,     &Daemon::launch_workers, &Daemon::open_twins,      &Daemon::start_twin_io,
    &Daemon::start_reconciler, &Daemon::serve};

v1::InterfaceChange proto_of(const std::string& interface, const drivers::InterfaceChanges& changes) {
    v1::InterfaceChange out;
    out.set_interface(interface);
    out.set_ipv6(changes.ipv6_was_on);
    out.set_gro(changes.gro_was_on);
    out.set_lro(changes.lro_was_on);
    out.set_mtu(static_cast<uint32_t>(changes.former_mtu));
    out.set_flags_added(static_cast<uint16_t>(changes.flags_added));
    return out;
}

drivers::InterfaceChanges from_proto(const v1::InterfaceChange& change) {
    return {.former_mtu = static_cast<int>(change.mtu()),
            .ipv6_was_on = change.ipv6(),
            .gro_was_on = change.gro(),
            .lro_was_on = change.lro(),
            .flags_added = static_cast<short>(change.flags_added())};
}

}  // namespace

FileVersion version_of(const std::string& path) {
    struct stat facts{};
    if (path.empty() || stat(path.c_str(), &facts) != 0) {
        return {};
    }
    return {facts.st_ino, facts.st_size, facts.st_mtim.tv_sec, facts.st_mtim.tv_nsec};
}

// The twins of the former process exist, so their routes can be read. A successor with other twins starts as
// if it were alone, apart from take_over().
StartOrder Daemon::start_order() const {
    const bool has_twins = std::ranges::all_of(
        options_.ports, [](const PortOption& port) { return if_nametoindex(port.twin.c_str()) != 0; });
    if (!handover_.is_successor() || !has_twins) {
        return StartOrder::Alone;
    }
    return order_of_successor(options_.ports);
}

std::span<const Daemon::Step> Daemon::steps() const {
    switch (order_) {
        case StartOrder::Beside:
            return kBeside;
        case StartOrder::InTurn:
            return kInTurn;
        case StartOrder::After:
            return kAfter;
        case StartOrder::Alone:
            break;
    }
    return kAlone;
}

Status Daemon::lock_files() {
    return handover_.is_successor() ? Status() : lock_named_files();
}

Status Daemon::lock_named_files() {
    for (const ListenAddress& address : options_.listen) {
        if (!address.is_unix()) {
            continue;
        }
        PENSTOCK_TRY(auto lock, FileLock::acquire(address.path + ".lock", "socket " + address.path));
        file_locks_.push_back(std::move(lock));
    }
    if (!options_.state_file.empty()) {
        // Two gateways that save into one file would each restart with the other's configuration.
        PENSTOCK_TRY(auto lock,
                     FileLock::acquire(options_.state_file + ".lock", "state file " + options_.state_file));
        file_locks_.push_back(std::move(lock));
    }
    return {};
}

// The successor may open everything that this process has had. It does not wait for the release of memory,
// nor for the end of ports that it can have at the same time.
void Daemon::hand_over() {
    v1::UpgradeNote note;
    for (const auto& port : ports_) {
        *note.add_changes() = proto_of(port->facts().interface, port->leave_interface());
    }
    if (order_of_successor(options_.ports) == StartOrder::Beside) {
        for (const auto& port : ports_) {
            port->unlock();
        }
    } else {
        ports_.clear();
        handover_.note_step(step::kPortsClosed);
    }
    file_locks_.clear();
    tables_->release_lock();
    bfd::FrrLink::Handed bfd;
    if (bfd_) {
        bfd = bfd_->hand_over();
        *note.mutable_bfd() = proto_of(bfd.sessions, bfd.version);
    }
    note.set_returning_shares(share_copies_ ? share_copies_->returning() : 0);
    if (link_duty_) {
        const HolderReport report = link_duty_->report();
        note.set_held_shares(report.held);
        note.set_held_plan(report.plan_version);
    }
    handover_.note_handed_over(std::move(note), bfd.socket.get());
}

Status Daemon::take_over() {
    if (!handover_.is_successor()) {
        return {};
    }
    log::get("control").info("prepared, the former process is awaited");
    PENSTOCK_TRY_STATUS(handover_.await_take_over(kVersion));
    has_taken_over_ = true;
    // Frames that the former process may have forwarded. What arrives from now on waits for the workers.
    for (const auto& port : ports_) {
        port->discard_received();
        PENSTOCK_TRY_STATUS(port->lock());
    }
    inherit_interfaces();
    PENSTOCK_TRY_STATUS(lock_named_files());
    PENSTOCK_TRY_STATUS(tables_->take_lock());
    handover_.note_step(step::kLocked);
    return {};
}

void Daemon::inherit_interfaces() {
    for (const v1::InterfaceChange& change : handover_.former().changes()) {
        for (const auto& port : ports_) {
            if (port->facts().interface == change.interface()) {
                port->inherit_interface(from_proto(change));
            }
        }
    }
}

// The former process may have applied another state, and routes may have changed, since both were read.
Status Daemon::refresh_state() {
    const bool has_new_routes = mirror_->poll(std::chrono::steady_clock::now()).forwarding;
    if (has_new_routes || version_of(options_.state_file) != loaded_) {
        PENSTOCK_TRY_STATUS(load_state());
        if (workers_) {
            if (flows_) {
                flows_->before_publish(*initial_);
            }
            workers_->publish(std::move(initial_));
        }
    }
    handover_.note_step(step::kRefreshed);
    return {};
}

}  // namespace penstock::gateway
