// SPDX-License-Identifier: Apache-2.0
// The tables that outlive the process, as the steps of its start use them (tables/table_keeper.hpp).
#include <rte_cycles.h>

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "control/gateway/program/daemon.hpp"
#include "control/log/log.hpp"
#include "dataplane/adopt/former.hpp"

namespace penstock::gateway {
namespace {

void log_adoption(const adopt::Report& report) {
    if (report.all_adopted() + report.all_lost() == 0) {
        return;
    }
    std::string lost;
    for (size_t i = 0; i < adopt::kNotAdopted; ++i) {
        if (report.lost[i] > 0) {
            lost += (lost.empty() ? ": " : ", ") + std::string(to_string(static_cast<adopt::NotAdopted>(i))) +
                    " " + std::to_string(report.lost[i]);
        }
    }
    log::get("control").info("{} connections of the former process continue, {} are lost{}; it took {} us",
                             report.all_adopted(), report.all_lost(), lost, report.microseconds);
}

}  // namespace

Status Daemon::open_tables() {
    PENSTOCK_TRY(tables_, TableKeeper::open({.folder = options_.table_dir,
                                             .state_file = options_.state_file,
                                             .no_huge = options_.no_huge,
                                             .workers = static_cast<unsigned>(cores_.worker_cpus.size()),
                                             .connections = options_.connections,
                                             .affinity_entries = options_.affinity_entries,
                                             .is_successor = handover_.is_successor()}));
    return {};
}

// The workers' tables are those that outlive the process, filled from the former ones.
void Daemon::continue_tables(worker::WorkerSetOptions& options) {
    if (!tables_->has_file()) {
        return;
    }
    options.secret = tables_->former_secret().value_or(options.secret);
    options.table_memory = [this](const std::string& name, size_t bytes, int) {
        return tables_->memory(name, bytes);
    };
    reconciler_->read([&](const ReconcilerState& state) {
        tables_->write_names(*state.compiler.compiled());
        options.former = tables_->former(*state.compiler.compiled(), state.compiler.ids(),
                                         state.origin != StateOrigin::None);
    });
    if (options.former) {
        options.former->keep_leaving = [this](const adopt::LeavingFlows& flows) {
            return reconciler_->keep_leaving(flows);
        };
    }
    options.before_launch = [this, secret = options.secret](const adopt::Report& report) {
        tables_->put_in_force({.tsc_hz = rte_get_tsc_hz(),
                               .secret = secret,
                               .rss_key = rss_key_,
                               .snat_ports = options_.snat_ports});
        log_adoption(report);
    };
}

}  // namespace penstock::gateway
