// SPDX-License-Identifier: Apache-2.0
// The tables that outlive the process, as the steps of its start use them (tables/table_keeper.hpp).
#include <rte_cycles.h>

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "control/gateway/program/daemon.hpp"
#include "control/gateway/upgrade/step_names.hpp"
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
                                             .hugepage_size = options_.hugepage_size,
                                             .workers = static_cast<unsigned>(cores_.worker_cpus.size()),
                                             .connections = options_.connections,
                                             .affinity_entries = options_.affinity_entries,
                                             .is_successor = handover_.is_successor()}));
    handover_.note_step(step::kTablesOpened);
    return {};
}

// The workers' tables are those that outlive the process.
void Daemon::place_tables(worker::WorkerSetOptions& options) {
    if (tables_->has_file()) {
        options.secret = tables_->former_secret().value_or(options.secret);
        options.table_memory = [this](const std::string& name, size_t bytes, int) {
            return tables_->memory(name, bytes);
        };
    }
    secret_ = options.secret;
}

// What the workers' tables are filled from.
std::optional<adopt::FormerTables> Daemon::former_tables() {
    if (!tables_->has_file()) {
        return std::nullopt;
    }
    auto former = reconciler_->read([&](const ReconcilerState& state) {
        tables_->write_names(*state.compiler.compiled());
        return tables_->former(*state.compiler.compiled(), state.compiler.ids(),
                               state.origin != StateOrigin::None);
    });
    if (former) {
        former->keep_leaving = [this](const adopt::LeavingFlows& flows) {
            return reconciler_->keep_leaving(flows);
        };
    }
    handover_.note_step(step::kNamesTranslated);
    return former;
}

// The workers' tables are complete.
void Daemon::put_tables_in_force(const adopt::Report& report) {
    if (tables_->has_file()) {
        handover_.note_step(step::kAdopted);
        tables_->put_in_force({.tsc_hz = rte_get_tsc_hz(),
                               .secret = secret_,
                               .rss_key = rss_key_,
                               .snat_ports = options_.snat_ports});
        log_adoption(report);
        handover_.note_step(step::kInForce);
    }
}

}  // namespace penstock::gateway
