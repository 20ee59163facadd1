// SPDX-License-Identifier: Apache-2.0
// All commands. Each is defined in the file of its name.
#pragma once

#include "control/cli/commands/command.hpp"

namespace penstock::cli {

[[nodiscard]] Command get_services();
[[nodiscard]] Command get_backends();
[[nodiscard]] Command get_connections();
[[nodiscard]] Command get_affinity();
[[nodiscard]] Command get_ports();
[[nodiscard]] Command get_workers();
[[nodiscard]] Command get_flows();
[[nodiscard]] Command get_routes();
[[nodiscard]] Command get_neighbours();
[[nodiscard]] Command get_vips();
[[nodiscard]] Command get_bfd();
[[nodiscard]] Command get_shares();
[[nodiscard]] Command get_gateways();
[[nodiscard]] Command get_contexts();
[[nodiscard]] Command get_sync();
[[nodiscard]] Command get_pools();
[[nodiscard]] Command get_addresses();
[[nodiscard]] Command describe_service();
[[nodiscard]] Command describe_pool();
[[nodiscard]] Command describe_share();
[[nodiscard]] Command stats();
[[nodiscard]] Command explain();
[[nodiscard]] Command explain_annotations();
[[nodiscard]] Command status();
[[nodiscard]] Command version();
[[nodiscard]] Command clear_affinity();
[[nodiscard]] Command set_log_level();
[[nodiscard]] Command set_scheduler();
[[nodiscard]] Command drain();
[[nodiscard]] Command undrain();
[[nodiscard]] Command fail_back();
[[nodiscard]] Command upgrade();
[[nodiscard]] Command capture_command();
[[nodiscard]] Command completion();
[[nodiscard]] Command doctor();
[[nodiscard]] Command top_command();
[[nodiscard]] Command doctor_bind();
[[nodiscard]] Command doctor_unbind();

}  // namespace penstock::cli
