#include "control/gateway/proxy_health.hpp"

#include <array>
#include <ctime>
#include <string>

namespace penstock::gateway {
namespace {

// RFC 3339, in UTC.
std::string text_of(std::chrono::system_clock::time_point time) {
    const std::time_t seconds = std::chrono::system_clock::to_time_t(time);
    std::tm parts{};
    ::gmtime_r(&seconds, &parts);
    std::array<char, 32> text{};
    const size_t length = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
    return {text.data(), length};
}

http::Response answer(const ProxyFacts& facts, const ProxyTimes& times, bool well, bool with_node) {
    // Who is well is up to date, whenever the last change was: that is what readers of lastUpdated have always taken it for.
    const std::string updated = text_of(well ? times.wall : facts.programmed_at);
    std::string body = "{\"lastUpdated\": \"" + updated + "\",\"currentTime\": \"" + text_of(times.wall) + "\"";
    if (with_node) {
        body += std::string(", \"nodeEligible\": ") + (facts.node_eligible ? "true" : "false");
    }
    return {.status = well && (facts.node_eligible || !with_node) ? 200 : 503, .body = body + "}", .content_type = "application/json"};
}

}  // namespace

bool is_well(const ProxyFacts& facts, std::chrono::steady_clock::time_point now, std::chrono::seconds sync_limit) {
    return !facts.drained && (!facts.waiting_since || now - *facts.waiting_since <= 2 * sync_limit);
}

http::Response healthz(const ProxyFacts& facts, const ProxyTimes& times, std::chrono::seconds sync_limit) {
    return answer(facts, times, is_well(facts, times.now, sync_limit), true);
}

http::Response livez(const ProxyFacts& facts, const ProxyTimes& times, std::chrono::seconds sync_limit) {
    return answer(facts, times, is_well(facts, times.now, sync_limit), false);
}

}  // namespace penstock::gateway
