// SPDX-License-Identifier: Apache-2.0
// Assigns a CPU to each worker and to the control threads. Pure: the CPUs that this process may use are an
// argument.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/base/result.hpp"

namespace penstock::host {

// RTE_MAX_LCORE of Debian's build limits lcores, but CPU numbers may be higher. CPU_SETSIZE is the limit of
// the affinity calls.
inline constexpr unsigned kCpuMax = 1023;

// "1", "1,1,2-3": one worker for each CPU listed, in this order. A CPU listed twice gets two workers.
[[nodiscard]] Result<std::vector<unsigned>> parse_cores(std::string_view text);

struct CoreWishes {
    std::optional<unsigned> workers;     // --workers
    std::vector<unsigned> worker_cores;  // --worker-cores; empty: chosen by plan_cores()
    std::optional<unsigned> main_core;   // --main-core
};

struct CorePlan {
    unsigned main_cpu = 0;
    std::vector<unsigned> worker_cpus;
    std::string remark;  // warning for the operator: polling workers that share a CPU get half of it each
    bool operator==(const CorePlan&) const = default;
};

// The main core defaults to the first CPU allowed. Workers then use the other CPUs in order and the main
// core's last, and start over if there are more workers than CPUs. InvalidArgument: a CPU that is not
// allowed, or two options that contradict each other.
[[nodiscard]] Result<CorePlan> plan_cores(const CoreWishes& wishes, const std::vector<unsigned>& allowed);

}  // namespace penstock::host
