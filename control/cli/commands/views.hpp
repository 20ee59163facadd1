// SPDX-License-Identifier: Apache-2.0
// Text views of API messages. Pure. Each is defined in the file of the command that prints it, and tested
// with exact text.
#pragma once

#include <string>
#include <vector>

#include "control/cli/table.hpp"
#include "control/host/finding.hpp"
#include "penstock/v1/debug.pb.h"
#include "penstock/v1/status.pb.h"
#include "penstock/v1/sync.pb.h"

namespace penstock::cli {

[[nodiscard]] Table services_table(const v1::ListServicesResponse& services, bool wide);
[[nodiscard]] Table backends_table(const v1::ListBackendsResponse& backends, bool wide);
[[nodiscard]] Table connections_table(const std::vector<v1::Connection>& connections, bool wide);
[[nodiscard]] Table affinity_table(const std::vector<v1::AffinityEntry>& entries);
[[nodiscard]] Table ports_table(const v1::ListPortsResponse& ports, bool wide);
[[nodiscard]] Table flows_table(const v1::ListFlowsResponse& flows, bool wide);
[[nodiscard]] Table workers_table(const v1::ListWorkersResponse& workers, bool wide);
[[nodiscard]] Table routes_table(const v1::ListRoutesResponse& routes, bool wide);
[[nodiscard]] Table vips_table(const v1::ListVipsResponse& vips);
[[nodiscard]] Table bfd_table(const v1::ListBfdSessionsResponse& sessions, bool wide);
[[nodiscard]] Table shares_table(const v1::ListSharesResponse& shares, bool wide);
// `vips`: those of all shares.
[[nodiscard]] std::string share_description(const v1::ListSharesResponse& shares, const v1::Share& share,
                                            const v1::ListVipsResponse& vips);
[[nodiscard]] Table gateways_table(const v1::ListSharesResponse& shares, bool wide);
[[nodiscard]] Table neighbours_table(const v1::ListNeighboursResponse& neighbours, bool wide);
// All ports of one Kubernetes Service.
[[nodiscard]] std::string service_description(const v1::ListServicesResponse& services,
                                              const v1::ListBackendsResponse& backends);
[[nodiscard]] std::string counters_tables(const v1::Counters& counters, bool wide);
[[nodiscard]] std::string explanation_text(const v1::ExplainRequest& request,
                                           const v1::Explanation& explanation);
[[nodiscard]] std::string sync_text(const v1::Sync& sync, bool wide);
[[nodiscard]] std::string pools_table(const v1::ListPoolsResponse& pools, bool wide);
// Phase, leader, and why the newest list of pools is not in force.
[[nodiscard]] std::string pools_footer(const v1::ListPoolsResponse& pools);
// `addresses`: those of all Services.
[[nodiscard]] std::string pool_description(const v1::AddressPool& pool,
                                           const v1::ListAddressesResponse& addresses);
[[nodiscard]] std::string addresses_table(const v1::ListAddressesResponse& addresses);
// "203.0.113.7,2001:db8::7"
[[nodiscard]] std::string addresses_text(const v1::ServiceAddresses& service);
// Why a Service has no address or not the requested ones. Requires a refusal.
[[nodiscard]] std::string refusal_description(const v1::ServiceAddresses& service);
// Step of a drain and the service ports with open flows; "" if an older penstockd does not report them.
[[nodiscard]] std::string drain_progress(const v1::Status& status);
// The last upgrade of a supervised penstockd, as one line of status.
[[nodiscard]] std::string upgrade_text(const v1::Upgrade& upgrade);
[[nodiscard]] std::string status_text(const v1::Status& status);
// "http:80", "80".
[[nodiscard]] std::string port_text(const v1::Service& service);
// "ok", "refused: REASON", "not served" or "no endpoints", each with the number of warnings.
[[nodiscard]] std::string standing_text(const v1::ServiceStatus& service);

// Results of `doctor`: a table with the commands below each row, and the numbers of results.
[[nodiscard]] std::string findings_text(const std::vector<host::Finding>& findings);
[[nodiscard]] std::string findings_json(const std::vector<host::Finding>& findings);
// 0: ok or unknown; 1: warning; 2: fault.
[[nodiscard]] int exit_code_of(const std::vector<host::Finding>& findings);

}  // namespace penstock::cli
