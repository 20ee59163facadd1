// SPDX-License-Identifier: Apache-2.0
// For tests that kill a process between two steps of an upgrade (suite upgrade).
#pragma once

#include <string_view>

namespace penstock::gateway {

// Stops this process (SIGSTOP) if the environment variable PENSTOCK_TEST_UPGRADE_STOP names a file whose
// content is `step`. Without the variable, nothing is read.
void stop_for_test(std::string_view step);

}  // namespace penstock::gateway
