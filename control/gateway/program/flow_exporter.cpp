// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/program/flow_exporter.hpp"

#include <span>
#include <string>
#include <vector>

namespace penstock::gateway {
namespace {

flow_records::ServiceFacts facts_of(const ReconcilerState& state, ServiceId id) {
    flow_records::ServiceFacts facts;
    // Also of a service port that has been removed, until its id is assigned again.
    const model::ServiceKey* key = state.compiler.ids().services.key_of(id);
    if (key == nullptr) {
        return facts;
    }
    facts.namespace_name = key->namespace_name;
    facts.name = key->name;
    facts.port_name = key->port_name;
    if (const Programmed* programmed = state.compiler.compiled()->services.get(*key)) {
        const model::AccessLog& log = programmed->desired->access_log;
        if (!log.sink.empty()) {
            facts.folder = log.sink.value();
        }
        if (!log.prefix.empty()) {
            facts.folder += "/" + log.prefix.value();
        }
        facts.interval_min = log.interval_min;
        facts.tags = log.tags.value();
    }
    return facts;
}

}  // namespace

std::unique_ptr<flow_records::Exporter> start_flow_exporter(
    const Options& options, worker::WorkerSet& workers, const Reconciler& reconciler,
    std::chrono::system_clock::time_point started_on) {
    const FlowRecordOptions& records = options.flow_records;
    if (!records.is_on()) {
        return nullptr;
    }
    const auto started_s =
        std::chrono::duration_cast<std::chrono::seconds>(started_on.time_since_epoch()).count();
    return std::make_unique<flow_records::Exporter>(flow_records::Exporter::Options{
        .origin = {.gateway = options.identity.gateway_name,
                   .one_in = records.one_in,
                   .started_s = static_cast<uint32_t>(started_s)},
        .folder = records.folder,
        .rotation = {.bytes_max = uint64_t{records.file_mb} << 20, .kept = records.files},
        .collector = records.collector,
        .domain = records.domain,
        .take =
            [&workers](std::span<pipeline::TimedFlowRecord> out) { return workers.take_flow_records(out); },
        .name =
            [&reconciler](std::span<const ServiceId> ids) {
                return reconciler.read([&](const ReconcilerState& state) {
                    std::vector<flow_records::ServiceFacts> facts;
                    for (const ServiceId id : ids) {
                        facts.push_back(facts_of(state, id));
                    }
                    return facts;
                });
            }});
}

}  // namespace penstock::gateway
