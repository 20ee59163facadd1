// SPDX-License-Identifier: Apache-2.0
#include "control/host/core_plan.hpp"

#include <algorithm>
#include <set>

#include "dataplane/base/limits.hpp"
#include "dataplane/base/text.hpp"

namespace penstock::host {
namespace {

std::unexpected<Error> invalid(std::string what) {
    return fail(Errc::InvalidArgument, std::move(what));
}

std::string list_of(const std::vector<unsigned>& numbers) {
    std::string text;
    for (const unsigned n : numbers) {
        text += (text.empty() ? "" : ",") + std::to_string(n);
    }
    return text;
}

}  // namespace

Result<std::vector<unsigned>> parse_cores(std::string_view text) {
    std::vector<unsigned> cores;
    for (const auto piece : split(text, ',')) {
        const auto ends = split(piece, '-');
        const auto first = whole_number<unsigned>(ends.front());
        const auto last = whole_number<unsigned>(ends.back());
        if (!first || !last || ends.size() > 2 || *first > *last || *last > kCpuMax) {
            return invalid("\"" + std::string(piece) + "\" is neither a CPU number nor a range FIRST-LAST");
        }
        for (unsigned core = *first; core <= *last; ++core) {
            cores.push_back(core);
        }
        if (cores.size() > limits::kWorkersMax) {
            return invalid("more than " + std::to_string(limits::kWorkersMax) + " workers");
        }
    }
    return cores;
}

Result<CorePlan> plan_cores(const CoreWishes& wishes, const std::vector<unsigned>& allowed) {
    const auto is_allowed = [&](unsigned cpu) { return std::ranges::find(allowed, cpu) != allowed.end(); };
    if (allowed.empty()) {
        return invalid("this process may not run on any CPU");
    }
    CorePlan plan;
    plan.main_cpu = wishes.main_core.value_or(allowed.front());
    if (!is_allowed(plan.main_cpu)) {
        return invalid("--main-core: CPU " + std::to_string(plan.main_cpu) +
                       " is not among the CPUs that this process may use, " + list_of(allowed));
    }
    if (!wishes.worker_cores.empty()) {
        if (wishes.workers && *wishes.workers != wishes.worker_cores.size()) {
            return invalid("--workers " + std::to_string(*wishes.workers) +
                           " contradicts the number of CPUs in --worker-cores, " +
                           std::to_string(wishes.worker_cores.size()));
        }
        for (const unsigned cpu : wishes.worker_cores) {
            if (!is_allowed(cpu)) {
                return invalid("--worker-cores: CPU " + std::to_string(cpu) +
                               " is not among the CPUs that this process may use, " + list_of(allowed));
            }
        }
        plan.worker_cpus = wishes.worker_cores;
    } else {
        std::vector<unsigned> order;
        std::ranges::copy_if(allowed, std::back_inserter(order),
                             [&](unsigned cpu) { return cpu != plan.main_cpu; });
        order.push_back(plan.main_cpu);
        for (unsigned worker = 0; worker < wishes.workers.value_or(1); ++worker) {
            plan.worker_cpus.push_back(order[worker % order.size()]);
        }
    }
    if (std::set(plan.worker_cpus.begin(), plan.worker_cpus.end()).size() < plan.worker_cpus.size()) {
        plan.remark = "several workers share a CPU (workers on CPUs " + list_of(plan.worker_cpus) +
                      "); suitable for tests, slow for traffic";
    } else if (std::ranges::find(plan.worker_cpus, plan.main_cpu) != plan.worker_cpus.end()) {
        plan.remark = "a worker polls on CPU " + std::to_string(plan.main_cpu) +
                      ", where the control threads run; suitable for tests, slow for traffic";
    }
    return plan;
}

}  // namespace penstock::host
