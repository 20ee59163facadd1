// SPDX-License-Identifier: Apache-2.0
// The machine as the checks see it: files below a root folder, and the few facts that only system calls give.
// Tests replace both.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "control/host/root.hpp"
#include "dataplane/base/result.hpp"

namespace penstock::host {

// Offloads of an interface that are on, by the names of ethtool -K.
using Offloads = std::vector<std::string>;

struct Machine {
    Root root;
    // The offloads among tx, tso, gso, gro and lro that are on. Nullopt: no such interface, or no permission.
    std::function<std::optional<Offloads>(const std::string& interface)> offloads;
    // The name of an interface's driver, "veth"; "" if unknown.
    std::function<std::string(const std::string& interface)> interface_driver;
    // Whether the kernel's clock is synchronised; nullopt: unknown.
    std::function<std::optional<bool>()> is_clock_synchronised;
    std::function<std::chrono::system_clock::time_point()> now;
    // Runs `penstockd --check-config --config FILE`. Lines of mistakes; nullopt: no penstockd is installed.
    std::function<std::optional<std::vector<std::string>>(const std::string& file)> check_config;

    // For bind and unbind. Writes a file of sysfs, given as "/sys/...".
    std::function<Status(std::string_view path, std::string_view text)> write;
    std::function<Status(const std::string& module)> load_module;
};

// The machine that the program runs on. Functions may block for some milliseconds; check_config and
// load_module run other programs.
[[nodiscard]] Machine real_machine();

}  // namespace penstock::host
