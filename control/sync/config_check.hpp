// SPDX-License-Identifier: Apache-2.0
// penstock-sync --check-config: mistakes in the files that the options name. Reads the files once; does not
// use the network.
#pragma once

#include <string>
#include <vector>

#include "control/sync/options.hpp"

namespace penstock::sync {

// One line for each mistake: those that would stop a start, files that a start would wait for, and objects in
// manifests and address pools that would not be in force. Each begins with the option that names the file.
// Empty: none.
[[nodiscard]] std::vector<std::string> mistakes_in(const Options& options);

}  // namespace penstock::sync
