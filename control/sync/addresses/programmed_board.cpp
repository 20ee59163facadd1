// SPDX-License-Identifier: Apache-2.0
#include "control/sync/addresses/programmed_board.hpp"

#include <algorithm>
#include <utility>

#include "control/kube/status/service_status.hpp"

namespace penstock::sync {
namespace {

// A condition has room for 32 KiB; a longer list of gateways does not fit.
constexpr size_t kGatewaysNamedMax = 16;

}  // namespace

void ProgrammedBoard::report(const std::string& gateway, const kube::ObjectName& service, bool is_served) {
    {
        const std::lock_guard lock(mutex_);
        reachable_.try_emplace(gateway, true);
        const auto [served, is_new] = entries_[service].own.try_emplace(gateway, is_served);
        if (!is_new && std::exchange(served->second, is_served) == is_served) {
            return;
        }
        changed_.insert(service);
        ++own_version_;
    }
    wake_();
}

void ProgrammedBoard::set_reachable(const std::string& gateway, bool is_reachable) {
    {
        const std::lock_guard lock(mutex_);
        const auto [known, is_new] = reachable_.try_emplace(gateway, is_reachable);
        if (!is_new && std::exchange(known->second, is_reachable) == is_reachable) {
            return;
        }
        ++own_version_;
        note_all_changed();
    }
    wake_();
}

void ProgrammedBoard::report_other(const std::string& gateway, const kube::ObjectName& service,
                                   bool is_served) {
    const std::lock_guard lock(mutex_);
    const auto [served, is_new] = entries_[service].others.try_emplace(gateway, is_served);
    if (is_new || std::exchange(served->second, is_served) != is_served) {
        changed_.insert(service);
    }
}

void ProgrammedBoard::set_others(std::set<std::string> gateways) {
    const std::lock_guard lock(mutex_);
    if (gateways == others_) {
        return;
    }
    others_ = std::move(gateways);
    for (auto& [service, entry] : entries_) {
        std::erase_if(entry.others, [this](const auto& each) { return !others_.contains(each.first); });
    }
    note_all_changed();
}

void ProgrammedBoard::note_all_changed() {
    for (const auto& [service, entry] : entries_) {
        changed_.insert(changed_.end(), service);
    }
}

bool ProgrammedBoard::is_own(const std::string& gateway) const {
    const auto found = reachable_.find(gateway);
    return found != reachable_.end() && found->second;
}

std::vector<kube::ObjectName> ProgrammedBoard::take_changed() {
    const std::lock_guard lock(mutex_);
    const auto changed = std::exchange(changed_, {});
    return {changed.begin(), changed.end()};
}

std::optional<std::vector<std::string>> ProgrammedBoard::gateways_of(const kube::ObjectName& service) const {
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find(service);
    if (found == entries_.end()) {
        return std::nullopt;
    }
    std::set<std::string> gateways;
    for (const auto& [gateway, is_served] : found->second.own) {
        if (is_served && is_own(gateway)) {
            gateways.insert(gateway);
        }
    }
    for (const auto& [gateway, is_served] : found->second.others) {
        if (is_served && !is_own(gateway)) {
            gateways.insert(gateway);
        }
    }
    return std::vector<std::string>(gateways.begin(), gateways.end());
}

bool ProgrammedBoard::is_complete(const kube::ObjectName& service) const {
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find(service);
    return std::ranges::all_of(others_, [&](const std::string& gateway) {
        return is_own(gateway) || (found != entries_.end() && found->second.others.contains(gateway));
    });
}

void ProgrammedBoard::forget(const kube::ObjectName& service) {
    const std::lock_guard lock(mutex_);
    entries_.erase(service);
    changed_.erase(service);
}

std::vector<std::string> ProgrammedBoard::own_gateways() const {
    const std::lock_guard lock(mutex_);
    std::vector<std::string> gateways;
    for (const auto& [gateway, is_reachable] : reachable_) {
        if (is_reachable) {
            gateways.push_back(gateway);
        }
    }
    return gateways;
}

std::vector<kube::ObjectName> ProgrammedBoard::not_served_by(
    const std::string& gateway, const std::vector<kube::ObjectName>& services) const {
    const std::lock_guard lock(mutex_);
    std::vector<kube::ObjectName> lacking;
    for (const kube::ObjectName& service : services) {
        const auto found = entries_.find(service);
        const auto served = found == entries_.end() ? std::map<std::string, bool>::const_iterator()
                                                    : found->second.own.find(gateway);
        if (found == entries_.end() || served == found->second.own.end() || !served->second) {
            lacking.push_back(service);
        }
    }
    return lacking;
}

uint64_t ProgrammedBoard::own_version() const {
    const std::lock_guard lock(mutex_);
    return own_version_;
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
            .message = gateways.empty() ? "no gateway serves the Service" : message};
}

}  // namespace penstock::sync
