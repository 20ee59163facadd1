// SPDX-License-Identifier: Apache-2.0
// Both sides of an upgrade as steps of the process (upgrade/handover.hpp), and the locks of its files.
#include <string>
#include <utility>

#include "control/gateway/program/daemon.hpp"
#include "control/log/log.hpp"

namespace penstock::gateway {

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

// The successor may open everything that this process has had. It does not wait for the release of memory.
void Daemon::hand_over() {
    ports_.clear();
    file_locks_.clear();
    tables_->release_lock();
    handover_.note_handed_over();
}

Status Daemon::take_over() {
    if (!handover_.is_successor()) {
        return {};
    }
    log::get("control").info("prepared, the ports of the former process are awaited");
    PENSTOCK_TRY_STATUS(handover_.await_take_over());
    PENSTOCK_TRY_STATUS(lock_named_files());
    return tables_->take_lock();
}

}  // namespace penstock::gateway
