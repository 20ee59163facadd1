// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/upgrade/test_stop.hpp"

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <string>

namespace penstock::gateway {

void stop_for_test(std::string_view step) {
    const char* const path = std::getenv("PENSTOCK_TEST_UPGRADE_STOP");
    if (path == nullptr) {
        return;
    }
    std::string wanted;
    if (std::getline(std::ifstream(path), wanted) && wanted == step) {
        static_cast<void>(std::raise(SIGSTOP));
    }
}

}  // namespace penstock::gateway
