// SPDX-License-Identifier: Apache-2.0
// Checks whether a machine is ready for a gateway: devices, memory, CPUs, kernel settings, certificates.
// Reads files only; changes nothing.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "control/host/finding.hpp"
#include "control/host/machine.hpp"
#include "control/host/needs.hpp"

namespace penstock::host {

struct CheckName {
    std::string_view name;
    std::string_view meaning;
};
// All checks, in the order of the findings.
[[nodiscard]] std::span<const CheckName> all_checks();

// `config`: the INI file of penstockd; "": none, and only what concerns any gateway is checked.
[[nodiscard]] std::vector<Finding> examine(const Machine& machine, const std::string& config);

}  // namespace penstock::host
