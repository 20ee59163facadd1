// SPDX-License-Identifier: Apache-2.0
// The parent process of a supervised gateway (--supervise on). It starts the gateway, passes signals to it,
// ends with it, and replaces it by a successor on SIGUSR2 (upgrade/upgrade_steps.hpp). Its process id stays
// the same. It has no DPDK, no port and no socket that others reach; it keeps the descriptors of the twins,
// so that they stay while one gateway process follows another.
#pragma once

#include <string>
#include <vector>

namespace penstock::gateway {

// Returns the exit code of the program. `arguments`: as main() got them. `guarded`: interfaces whose frames
// Linux's stack must not see while no gateway has them.
int supervise(char** arguments, std::vector<std::string> guarded);

}  // namespace penstock::gateway
