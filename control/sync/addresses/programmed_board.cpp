// SPDX-License-Identifier: Apache-2.0
#include "control/sync/addresses/programmed_board.hpp"

#include <utility>

#include "control/kube/status/service_status.hpp"

namespace penstock::sync {
namespace {

// A condition has room for 32 KiB; a list of more gateways helps nobody.
constexpr size_t kGatewaysNamedMax = 16;

}  // namespace

void ProgrammedBoard::report(const std::string& gateway, const kube::ObjectName& service, bool is_served) {
    {
        const std::lock_guard lock(mutex_);
        const auto [entry, is_new] = served_by_.try_emplace(service);
        const bool has_changed =
            is_served ? entry->second.insert(gateway).second : entry->second.erase(gateway) != 0;
        if (!has_changed && !is_new) {
            return;
        }
        changed_.insert(service);
    }
    wake_();
}

std::vector<kube::ObjectName> ProgrammedBoard::take_changed() {
    const std::lock_guard lock(mutex_);
    const auto changed = std::exchange(changed_, {});
    return {changed.begin(), changed.end()};
}

std::optional<std::vector<std::string>> ProgrammedBoard::gateways_of(const kube::ObjectName& service) const {
    const std::lock_guard lock(mutex_);
    const auto found = served_by_.find(service);
    if (found == served_by_.end()) {
        return std::nullopt;
    }
    return std::vector<std::string>(found->second.begin(), found->second.end());
}

void ProgrammedBoard::forget(const kube::ObjectName& service) {
    const std::lock_guard lock(mutex_);
    served_by_.erase(service);
    changed_.erase(service);
}

kube::Condition programmed_condition(const std::vector<std::string>& gateways) {
    std::string message;
    for (size_t i = 0; i < gateways.size() && i < kGatewaysNamedMax; ++i) {
        message += (i == 0 ? "served by " : ", ") + gateways[i];
    }
    if (gateways.size() > kGatewaysNamedMax) {
        message += " and " + std::to_string(gateways.size() - kGatewaysNamedMax) + " more";
    }
    return {.type = std::string(kube::kProgrammedCondition),
            .status = gateways.empty() ? "False" : "True",
            .reason = gateways.empty() ? "NotServed" : "Served",
            .message = gateways.empty() ? "no gateway of the penstock-sync that leads serves the Service; "
                                          "gateways of other penstock-sync are not counted"
                                        : message};
}

}  // namespace penstock::sync
