// SPDX-License-Identifier: Apache-2.0
#include "control/sync/pages.hpp"

#include <algorithm>

#include "control/sync/metrics.hpp"

namespace penstock::sync {
namespace {

// "[+]" and "[-]" as on the API server's own pages.
class Checks {
 public:
    void add(bool good, const std::string& text) {
        body_ += (good ? "[+] " : "[-] ") + text + "\n";
        all_good_ &= good;
    }
    [[nodiscard]] http::Response page() const {
        return {.status = all_good_ ? 200 : 503, .body = body_ + (all_good_ ? "ok\n" : "not ok\n")};
    }

 private:
    std::string body_;
    bool all_good_ = true;
};

void check_heartbeat(Checks& checks, const std::string& who, std::chrono::milliseconds age) {
    const bool goes_round = age < kStuckAfter;
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(age).count();
    checks.add(goes_round,
               who + (goes_round ? " is running" : " has been stuck for " + std::to_string(seconds) + " s"));
}

std::string with_error(std::string text, const std::string& error) {
    return error.empty() ? text : text + ": " + error;
}

}  // namespace

http::Response health_page(const SyncReading& reading) {
    Checks checks;
    check_heartbeat(checks, "source " + reading.source.source, reading.source.heartbeat_age);
    for (const GatewayStatus& gateway : reading.gateways) {
        check_heartbeat(checks, "gateway " + gateway.target, gateway.heartbeat_age);
    }
    return checks.page();
}

http::Response ready_page(const SyncReading& reading) {
    Checks checks;
    std::string optional;  // kinds that forwarding does not need
    if (!reading.source.trouble.empty()) {
        checks.add(false, "source " + reading.source.source + ": " + reading.source.trouble);
    } else if (reading.source.collections.empty()) {
        checks.add(false, "source " + reading.source.source + ": no collection is watched yet");
    }
    for (const kube::CollectionStatus& collection : reading.source.collections) {
        const std::string text =
            collection.listed ? collection.kind + ": listed, " + std::to_string(collection.objects)
                              : with_error(collection.kind + ": no complete list yet", collection.last_error);
        if (collection.listed || !collection.optional) {
            checks.add(collection.listed, text);
        } else {
            optional += "    " + text + "\n";
        }
    }
    const bool any_applied = std::ranges::any_of(
        reading.gateways, [](const auto& gateway) { return gateway.applied_version != 0; });
    const bool any_waits =
        std::ranges::any_of(reading.gateways, [](const auto& gateway) { return !gateway.leader.empty(); });
    checks.add(any_applied || any_waits, any_applied ? "a gateway has applied a state"
                                         : any_waits
                                             ? "ready to lead: another control plane leads at a gateway"
                                             : "no gateway has applied a state yet");
    http::Response page = checks.page();
    page.body += optional;
    // Informational lines only: one unreachable gateway must not make the control plane of the others
    // unready.
    for (const GatewayStatus& gateway : reading.gateways) {
        page.body +=
            "    gateway " + gateway.target + ": " +
            (gateway.connected         ? "connected"
             : !gateway.leader.empty() ? gateway.leader + " leads, this process is standby"
                                       : with_error("not connected", gateway.last_error)) +
            ", " +
            (gateway.applied_version == 0 ? "nothing applied yet"
                                          : "applied version " + std::to_string(gateway.applied_version)) +
            "\n";
    }
    return page;
}

http::Routes pages(const ReadSync& read) {
    return {{"/healthz", [read] { return health_page(read()); }},
            {"/readyz", [read] { return ready_page(read()); }},
            {"/metrics", http::heavy([read] {
                 return http::Response{.body = metrics_text(read()),
                                       .content_type = "text/plain; version=0.0.4; charset=utf-8"};
             })}};
}

}  // namespace penstock::sync
