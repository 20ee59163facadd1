// SPDX-License-Identifier: Apache-2.0
#include "control/sync/service_watch.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "control/sync/pages.hpp"

namespace penstock::sync {
namespace {

constexpr std::chrono::microseconds kLookMax = std::chrono::seconds(1);

// Why the source is not followed; "" if it is.
std::string source_fault(const kube::SourceStatus& source) {
    if (!source.trouble.empty()) {
        return source.trouble;
    }
    for (const kube::CollectionStatus& collection : source.collections) {
        if (!collection.listed && !collection.optional) {
            return collection.kind + ": no complete list yet" +
                   (collection.last_error.empty() ? "" : ": " + collection.last_error);
        }
    }
    return source.collections.empty() ? "no collection is watched yet" : "";
}

}  // namespace

process::ServiceReports::Facts service_facts(const SyncReading& reading) {
    process::ServiceReports::Facts facts;
    facts.goes_round = reading.source.heartbeat_age < kStuckAfter &&
                       std::ranges::all_of(
                           reading.gateways,
                           [](const GatewayStatus& gateway) { return gateway.heartbeat_age < kStuckAfter; });
    const auto connected = std::ranges::count(reading.gateways, true, &GatewayStatus::connected);
    const std::string fault = source_fault(reading.source);
    facts.status = (fault.empty() ? "follows " + reading.source.source
                                  : "waits for " + reading.source.source + ": " + fault) +
                   "; " + std::to_string(connected) + " of " + std::to_string(reading.gateways.size()) +
                   " gateways connected";
    return facts;
}

ServiceWatch::ServiceWatch(const process::ServiceManager& manager, ReadSync read)
    : manager_(manager),
      read_(std::move(read)),
      thread_([this](const std::stop_token& stopped) { run(stopped); }) {}

void ServiceWatch::run(const std::stop_token& stopped) {
    process::ServiceReports reports([this](const std::string& lines) { return manager_.send(lines); },
                                    manager_.watchdog());
    const auto period =
        reports.keep_alive().count() > 0 ? std::min(kLookMax, reports.keep_alive() / 2) : kLookMax;
    std::mutex mutex;
    std::condition_variable_any wake;
    std::unique_lock lock(mutex);
    while (!stopped.stop_requested()) {
        reports.look(service_facts(read_()), process::ServiceReports::Clock::now());
        wake.wait_for(lock, stopped, period, [] { return false; });
    }
}

}  // namespace penstock::sync
