// Which CPU each worker and the control threads run on. Pure: the CPUs that this process may use are an argument.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/base/result.hpp"

namespace penstock::gateway {

// "1", "1,1,2-3": one worker for each CPU named, in this order; a CPU named twice gets two workers.
[[nodiscard]] Result<std::vector<unsigned>> parse_cores(std::string_view text);

struct CoreWishes {
    std::optional<unsigned> workers;     // --workers
    std::vector<unsigned> worker_cores;  // --worker-cores; empty: chosen here
    std::optional<unsigned> main_core;   // --main-core
};

struct CorePlan {
    unsigned main_cpu = 0;
    std::vector<unsigned> worker_cpus;
    std::string remark;  // what the operator should know: polling workers that share a CPU halve each other
    bool operator==(const CorePlan&) const = default;
};

// The main core defaults to the first CPU allowed; workers then take the others in turn, the main core's last, and wrap around where there
// are more workers than CPUs. InvalidArgument: a CPU that is not allowed, or two options that contradict each other.
[[nodiscard]] Result<CorePlan> plan_cores(const CoreWishes& wishes, const std::vector<unsigned>& allowed);

}  // namespace penstock::gateway
