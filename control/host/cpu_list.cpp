// SPDX-License-Identifier: Apache-2.0
#include "control/host/cpu_list.hpp"

#include <set>

#include "control/host/core_plan.hpp"
#include "dataplane/base/text.hpp"

namespace penstock::host {

std::optional<std::vector<unsigned>> parse_cpu_list(std::string_view text) {
    if (trimmed(text).empty()) {
        return std::vector<unsigned>();
    }
    std::set<unsigned> cpus;
    for (const std::string_view piece : split(text, ',')) {
        const auto ends = split(piece, '-');
        const auto first = whole_number<unsigned>(ends.front());
        const auto last = whole_number<unsigned>(ends.back());
        if (ends.size() > 2 || !first || !last || *first > *last || *last > kCpuMax) {
            return std::nullopt;
        }
        for (unsigned cpu = *first; cpu <= *last; ++cpu) {
            cpus.insert(cpu);
        }
    }
    return std::vector(cpus.begin(), cpus.end());
}

std::string cpu_list_text(const std::vector<unsigned>& cpus) {
    std::string text;
    for (size_t i = 0; i < cpus.size();) {
        size_t last = i;
        while (last + 1 < cpus.size() && cpus[last + 1] == cpus[last] + 1) {
            ++last;
        }
        text += (text.empty() ? "" : ",") + std::to_string(cpus[i]) +
                (last == i ? "" : "-" + std::to_string(cpus[last]));
        i = last + 1;
    }
    return text;
}

}  // namespace penstock::host
