// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/care/proxy_health.hpp"

#include <array>
#include <ctime>

#include "control/log/log.hpp"

namespace penstock::gateway {
namespace {

std::string json_list(const std::vector<std::string>& texts) {
    std::string out = "[";
    for (const std::string& text : texts) {
        out += (out.size() == 1 ? "\"" : ", \"") + log::json_escaped(text) + "\"";
    }
    return out + "]";
}

// The body of kube-proxy, with the reasons if there are any.
http::Response answer(const ProxyFacts& facts, const ProxyTimes& times, bool is_current,
                      const std::vector<std::string>& reasons, bool with_node) {
    // A gateway that is not behind is up to date, regardless of the time of the last change. Readers of
    // lastUpdated expect this.
    const std::string updated = rfc3339(is_current ? times.wall : facts.programmed_at);
    std::string body =
        "{\"lastUpdated\": \"" + updated + "\",\"currentTime\": \"" + rfc3339(times.wall) + "\"";
    if (with_node) {
        body += std::string(", \"nodeEligible\": ") + (facts.node_eligible ? "true" : "false");
    }
    if (!reasons.empty()) {
        body += ", \"reasons\": " + json_list(reasons);
    }
    return {.status = reasons.empty() && (facts.node_eligible || !with_node) ? 200 : 503,
            .body = body + "}",
            .content_type = "application/json"};
}

// What clients need besides running threads.
void add_missing(const ProxyFacts& facts, std::vector<std::string>& reasons) {
    if (!facts.has_configuration) {
        reasons.emplace_back("no configuration is in force");
    }
    reasons.insert(reasons.end(), facts.port_faults.begin(), facts.port_faults.end());
}

bool is_behind(const ProxyFacts& facts, std::chrono::steady_clock::time_point now,
               std::chrono::seconds sync_limit) {
    return facts.waiting_since && now - *facts.waiting_since > 2 * sync_limit;
}

}  // namespace

std::string rfc3339(std::chrono::system_clock::time_point time) {
    const std::time_t seconds = std::chrono::system_clock::to_time_t(time);
    std::tm parts{};
    ::gmtime_r(&seconds, &parts);
    std::array<char, 32> text{};
    const size_t length = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
    return {text.data(), length};
}

std::vector<std::string> why_not_live(const ProxyFacts& facts, std::chrono::steady_clock::time_point now,
                                      std::chrono::seconds sync_limit) {
    std::vector<std::string> reasons = facts.stalls;
    if (is_behind(facts, now, sync_limit)) {
        const auto waits = std::chrono::duration_cast<std::chrono::seconds>(now - *facts.waiting_since);
        reasons.push_back("a change is not in every worker after " + std::to_string(waits.count()) + " s");
    }
    return reasons;
}

std::vector<std::string> why_not_well(const ProxyFacts& facts, std::chrono::steady_clock::time_point now,
                                      std::chrono::seconds sync_limit) {
    std::vector<std::string> reasons = why_not_live(facts, now, sync_limit);
    add_missing(facts, reasons);
    if (facts.drained) {
        reasons.emplace_back("drained");
    }
    return reasons;
}

std::vector<std::string> why_not_started(const ProxyFacts& facts) {
    std::vector<std::string> reasons = facts.stalls;
    add_missing(facts, reasons);
    return reasons;
}

bool is_well(const ProxyFacts& facts, std::chrono::steady_clock::time_point now,
             std::chrono::seconds sync_limit) {
    return why_not_well(facts, now, sync_limit).empty();
}

http::Response healthz(const ProxyFacts& facts, const ProxyTimes& times, std::chrono::seconds sync_limit) {
    return answer(facts, times, !is_behind(facts, times.now, sync_limit),
                  why_not_well(facts, times.now, sync_limit), true);
}

http::Response livez(const ProxyFacts& facts, const ProxyTimes& times, std::chrono::seconds sync_limit) {
    return answer(facts, times, !is_behind(facts, times.now, sync_limit),
                  why_not_live(facts, times.now, sync_limit), false);
}

}  // namespace penstock::gateway
