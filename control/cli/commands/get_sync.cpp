// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "control/cli/commands/list.hpp"
#include "control/cli/commands/views.hpp"
#include "control/cli/table.hpp"
#include "control/cli/text.hpp"

namespace penstock::cli {
namespace {

const char* collection_state_text(v1::SyncCollection::State state) {
    switch (state) {
        case v1::SyncCollection::STATE_WAITING:
            return "waiting";
        case v1::SyncCollection::STATE_LISTING:
            return "listing";
        case v1::SyncCollection::STATE_WATCHING:
            return "watching";
        case v1::SyncCollection::STATE_BACKING_OFF:
            return "backing-off";
        default:
            return "unknown";
    }
}

// Time since the last event of any collection.
std::string heard_text(const v1::Sync& sync) {
    bool heard = false;
    uint64_t age_ms = 0;
    for (const v1::SyncCollection& collection : sync.collections()) {
        if (collection.has_last_event_age_ms()) {
            age_ms =
                heard ? std::min(age_ms, collection.last_event_age_ms()) : collection.last_event_age_ms();
            heard = true;
        }
    }
    return heard ? "last event " + duration_text(age_ms) + " ago" : "no event yet";
}

// "in sync", or for how long not.
std::string standing_text(const v1::SyncCollection& collection) {
    if (!collection.listed()) {
        return "not listed yet";
    }
    return collection.stale_age_ms() == 0 ? "in sync"
                                          : "stale for " + duration_text(collection.stale_age_ms());
}

std::string events_text(const v1::SyncEvents& events) {
    uint64_t dropped = 0;
    for (const auto& [cause, count] : events.dropped()) {
        dropped += count;
    }
    return (events.enabled() ? "" : "off; ") + std::to_string(events.posted()) + " posted, " +
           std::to_string(events.repeated()) + " repeated, " + std::to_string(events.waiting()) +
           " waiting, " + std::to_string(dropped) + " dropped";
}

// The upper bound of the bucket that `share` of all changes do not exceed: "<=20ms"; "" before the first
// change.
std::string quantile_text(const v1::SyncLatency& latency, double share) {
    uint64_t total = 0;
    for (const uint64_t count : latency.counts()) {
        total += count;
    }
    if (total == 0) {
        return "";
    }
    uint64_t so_far = 0;
    for (int i = 0; i < latency.bounds_s_size(); ++i) {
        so_far += i < latency.counts_size() ? latency.counts(i) : 0;
        if (static_cast<double>(so_far) >= share * static_cast<double>(total)) {
            return "<=" + std::to_string(static_cast<uint64_t>(latency.bounds_s(i) * 1000)) + "ms";
        }
    }
    return latency.bounds_s().empty()
               ? ""
               : ">" + duration_text(static_cast<uint64_t>(*latency.bounds_s().rbegin() * 1000));
}

std::string collections_table(const v1::Sync& sync, bool wide) {
    std::vector<Table::Column> columns{{"COLLECTION"},        {"STATE"}, {"OBJECTS", true},
                                       {"QUARANTINED", true}, {"SYNC"},  {"LAST-EVENT", true}};
    if (wide) {
        columns.insert(columns.end(), {{"VERSION", true}, {"RESTARTS", true}, {"RELISTS", true}, {"PATH"}});
    }
    columns.push_back({"LAST-ERROR"});
    Table table(std::move(columns));
    for (const v1::SyncCollection& collection : sync.collections()) {
        std::vector<std::string> cells{
            collection.kind(),
            collection_state_text(collection.state()),
            std::to_string(collection.objects()),
            std::to_string(collection.quarantined()),
            standing_text(collection),
            collection.has_last_event_age_ms() ? duration_text(collection.last_event_age_ms()) : ""};
        if (wide) {
            cells.insert(cells.end(),
                         {collection.resource_version(), std::to_string(collection.watch_restarts()),
                          std::to_string(collection.relists()), collection.path()});
        }
        cells.push_back(collection.last_error());
        table.add(std::move(cells));
    }
    return table.text();
}

std::string gateways_table(const v1::Sync& sync, bool wide) {
    std::vector<Table::Column> columns{{"GATEWAY"},       {"NAME"},         {"CONNECTED"},
                                       {"APPLIED", true}, {"LAG", true},    {"SERVICES", true},
                                       {"REFUSED", true}, {"WAITING", true}};
    if (wide) {
        columns.insert(columns.end(), {{"DESIRED", true},
                                       {"FULL", true},
                                       {"DELTAS", true},
                                       {"AUDIT", true},
                                       {"P50", true},
                                       {"P99", true}});
    }
    columns.push_back({"LAST-ERROR"});
    Table table(std::move(columns));
    for (const v1::SyncGateway& gateway : sync.gateways()) {
        std::vector<std::string> cells{
            gateway.target(),
            gateway.name(),
            gateway.connected()        ? "yes"
            : gateway.leader().empty() ? "no"
                                       : "waiting",
            gateway.applied_version() == 0 ? "" : std::to_string(gateway.applied_version()),
            duration_text(gateway.lag_ms()),
            std::to_string(gateway.services()),
            std::to_string(gateway.refused()),
            std::to_string(gateway.changes_waiting())};
        if (wide) {
            cells.insert(
                cells.end(),
                {std::to_string(gateway.desired_version()), std::to_string(gateway.full_states()),
                 std::to_string(gateway.deltas()), std::to_string(gateway.audit_differences()),
                 quantile_text(gateway.apply_latency(), 0.5), quantile_text(gateway.apply_latency(), 0.99)});
        }
        cells.push_back(gateway.leader().empty() ? gateway.last_error() : gateway.leader() + " leads");
        table.add(std::move(cells));
    }
    return table.text();
}

Result<std::string> run_get_sync(Gateway* gateway, const Request& request) {
    PENSTOCK_TRY(const auto sync, gateway->sync());
    return request.is_structured() ? structured(json_text(sync), request.format)
                                   : sync_text(sync, request.is_wide());
}

}  // namespace

std::string sync_text(const v1::Sync& sync, bool wide) {
    return "Source:    " + sync.source() + ", " + heard_text(sync) + "\n" +  //
           "Software:  penstock-sync " + sync.software_version() + ", up for " +
           duration_text(sync.uptime_ms()) +                               //
           ", " + std::to_string(sync.resident_bytes() >> 20) + " MB\n" +  //
           "Events:    " + events_text(sync.events()) + "\n\n" + collections_table(sync, wide) + "\n" +
           gateways_table(sync, wide);
}

Command get_sync() {
    return {.words = {"get", "sync"},
            .options = {"output", "watch", "interval"},
            .summary = "Show penstock-sync: source, state of each collection, progress of each gateway",
            .program = Program::PenstockSync,
            .run = run_get_sync};
}

}  // namespace penstock::cli
