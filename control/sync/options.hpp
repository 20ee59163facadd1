// SPDX-License-Identifier: Apache-2.0
// Options of penstock-sync: first the command line, then the INI file named by --config, with the same names.
// Reading the options opens only that file.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <variant>
#include <vector>

#include "control/client/target.hpp"
#include "control/kube/events/write_limiter.hpp"
#include "control/kube/object_id.hpp"
#include "control/log/log.hpp"
#include "control/semantics/policy.hpp"
#include "control/sync/defaults.hpp"
#include "control/sync/monitor_options.hpp"
#include "dataplane/base/result.hpp"

namespace penstock::sync {

struct Options {
    // Exactly one of the three sources is given.
    std::filesystem::path manifests;
    std::vector<std::filesystem::path> kubeconfig;  // several files are merged as kubectl does
    bool in_cluster = false;

    bool allow_empty_folder = false;  // of `manifests`: an empty folder withdraws everything
    std::string context;              // of the kubeconfig; "": its current-context
    std::string namespace_name;       // "": all namespaces
    bool endpoints_only = false;
    bool allow_insecure = false;  // honour insecure-skip-tls-verify (AUTH-006)
    bool events = true;

    bool allocate_addresses = false;                             // LB-007; implied by `address_pools`
    std::filesystem::path address_pools;                         // "": AddressPool objects of the cluster
    std::string allocation_file = kAllocationFileDefault;        // with `manifests`
    kube::ObjectName lease{"penstock-system", "penstock-sync"};  // of the writer's election (LEASE-001)
    uint32_t status_per_s = kube::kStatusRateDefault;            // writes to the API server (APISYNC-020)
    std::vector<Prefix> pools_exclude;                           // no pool may overlap them

    std::vector<client::Target> gateways;  // at least one
    client::TlsFiles tls;
    uint32_t priority = 0;  // among the control planes of one gateway
    semantics::Policy policy;
    std::filesystem::path external_ip_policy;  // read and watched by the program; "": none
    std::chrono::milliseconds coalesce = kCoalesceDefault;
    std::chrono::seconds audit_period = kAuditPeriodDefault;

    MonitorOptions monitor;
    bool check_only = false;              // --check-config
    std::vector<std::string> log_levels;  // settings of log::set_levels
    log::Format log_format = log::Format::Text;
};

// Text of --help or --version. The program prints it and exits with success.
struct Information {
    std::string text;
};

// `arguments` excludes the program name. InvalidArgument names the option and the rule.
[[nodiscard]] Result<std::variant<Options, Information>> read_options(
    const std::vector<std::string>& arguments);

}  // namespace penstock::sync
