// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/care/observed.hpp"

#include <algorithm>
#include <string>

namespace penstock::gateway {

std::vector<model::ObservedNotice> merged(std::span<const std::vector<model::ObservedNotice>> lists) {
    std::vector<model::ObservedNotice> all;
    for (const auto& list : lists) {
        all.insert(all.end(), list.begin(), list.end());
    }
    std::ranges::sort(all);
    const auto repeated = std::ranges::unique(all);
    all.erase(repeated.begin(), repeated.end());
    if (all.size() > model::kObservedMax) {
        all.resize(model::kObservedMax);
    }
    return all;
}

void ExhaustionWatch::work(Time now) {
    std::erase_if(last_, [now](const auto& entry) { return now - entry.second >= kOverAfter; });
}

std::vector<model::ObservedNotice> ExhaustionWatch::notices() const {
    std::vector<model::ObservedNotice> notices;
    for (const auto& [key, last] : last_) {
        notices.push_back({key,
                           {model::Notice::Level::Warning, model::kSnatPortExhausted,
                            "service port " + key.to_string() +
                                ": all SNAT ports towards the endpoint of a new flow were in use; add "
                                "SNAT addresses or endpoints"}});
    }
    return notices;
}

void NodePortWatch::set(const model::ServiceKey& key, const model::Service* service) {
    std::set<Number> numbers;
    if (service != nullptr) {
        for (const auto& frontend : service->frontends) {
            if (frontend.cls == lb::FrontendClass::NodePort) {
                numbers.emplace(key.protocol, frontend.port);
            }
        }
    }
    const auto found = by_service_.find(key);
    if (found == by_service_.end() ? numbers.empty() : found->second == numbers) {
        return;
    }
    changed_ = true;
    if (found != by_service_.end()) {
        for (const Number& number : found->second) {
            const auto owners = owners_.find(number);
            owners->second.erase(key);
            if (owners->second.empty()) {
                owners_.erase(owners);
            }
        }
        by_service_.erase(found);
    }
    for (const Number& number : numbers) {
        owners_[number].insert(key);
    }
    if (!numbers.empty()) {
        by_service_.emplace(key, std::move(numbers));
    }
}

void NodePortWatch::look(std::span<const LocalListener> listeners) {
    notices_.clear();
    std::set<Number> told;
    for (const LocalListener& listener : listeners) {
        const auto owners = owners_.find({listener.protocol, listener.port});
        if (owners == owners_.end() || !told.insert(owners->first).second) {
            continue;
        }
        for (const auto& key : owners->second) {
            notices_.push_back(
                {key,
                 {model::Notice::Level::Warning, model::kNodePortInUse,
                  "nodePort " + std::to_string(listener.port) + "/" + to_string(listener.protocol) +
                      ": a program on the gateway's host listens on this port; traffic from outside goes to "
                      "the Service, not to the program"}});
        }
    }
    std::ranges::sort(notices_);
}

void AccessLogWatch::set(const model::ServiceKey& key, const model::Service* service) {
    if (service != nullptr && service->access_log.enabled.value_or(false)) {
        requested_.insert(key);
    } else {
        requested_.erase(key);
    }
}

std::vector<model::ObservedNotice> AccessLogWatch::notices() const {
    std::vector<model::ObservedNotice> notices;
    for (const auto& key : requested_) {
        notices.push_back({key,
                           {model::Notice::Level::Warning, model::kUnsupportedAnnotation,
                            "the access log is requested, but this gateway writes no flow records; set "
                            "--flow-log or --flow-collector of penstockd"}});
    }
    return notices;
}

}  // namespace penstock::gateway
