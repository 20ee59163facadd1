// SPDX-License-Identifier: Apache-2.0
// Starts EAL once per test program with the resources of an unprivileged process: no hugepages, no PCI, no
// files. Five lcores: the main one on CPU 0, and four workers on the last CPU, so that tests with four
// workers run on two cores.
#pragma once

#include <rte_eal.h>
#include <rte_lcore.h>

#include <string>
#include <thread>
#include <vector>

namespace penstock::test {

inline constexpr unsigned kTestWorkersMax = 4;

// The CPU of lcores 1 to 4.
[[nodiscard]] inline unsigned worker_cpu() {
    const unsigned cpus = std::thread::hardware_concurrency();
    return cpus > 1 ? 1 : 0;
}

// False if EAL failed to start (the test then reports it and fails).
[[nodiscard]] inline bool start_eal() {
    static const bool started = [] {
        const std::string worker = std::to_string(worker_cpu());
        std::string lcores = "0@0";
        for (unsigned w = 1; w <= kTestWorkersMax; ++w) {
            lcores += "," + std::to_string(w) + "@" + worker;
        }
        std::vector<std::string> arguments = {
            "test", "--no-huge", "--no-shconf", "--no-telemetry",          "--no-pci",     "-m",
            "512",  "--lcores",  lcores,        "--log-level=lib.*:error", "--main-lcore", "0"};
        std::vector<char*> argv;
        for (std::string& argument : arguments) {
            argv.push_back(argument.data());
        }
        return rte_eal_init(static_cast<int>(argv.size()), argv.data()) >= 0;
    }();
    return started;
}

}  // namespace penstock::test
