// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/program/drain_readings.hpp"

#include <algorithm>
#include <vector>

namespace penstock::gateway {

std::function<uint64_t(const Compiled& compiled)> vip_packets(const worker::WorkerSet& workers) {
    return [&workers](const Compiled& compiled) {
        const worker::Inspector inspector = workers.inspect();
        uint64_t packets = 0;
        for (const auto& [key, programmed] : compiled.services) {
            const bool has_vip =
                std::ranges::any_of(programmed.desired->frontends, [](const model::Frontend& frontend) {
                    return frontend.cls == lb::FrontendClass::LoadBalancerIp ||
                           frontend.cls == lb::FrontendClass::ExternalIp;
                });
            packets += has_vip ? inspector.service(programmed.service->id).forward_packets : 0;
        }
        return packets;
    };
}

std::map<model::ServiceKey, uint64_t> open_flows_by_service(const worker::WorkerSet& workers,
                                                            const Reconciler& reconciler) {
    const worker::Inspector inspector = workers.inspect();
    const uint32_t ids =
        reconciler.read([](const ReconcilerState& state) { return state.compiler.ids().backends.size(); });
    std::vector<std::pair<BackendId, uint64_t>> open;
    for (uint32_t number = 0; number < ids; ++number) {
        if (const uint64_t flows = inspector.backend({number}).open; flows > 0) {
            open.emplace_back(BackendId{number}, flows);
        }
    }
    // Ids outlive their service ports, so that a draining flow still has a name.
    return reconciler.read([&](const ReconcilerState& state) {
        std::map<model::ServiceKey, uint64_t> by_service;
        const IdMap& names = state.compiler.ids();
        for (const auto& [id, flows] : open) {
            const BackendKey* const backend = names.backends.key_of(id);
            const model::ServiceKey* const key =
                backend == nullptr ? nullptr : names.services.key_of(backend->service);
            if (key != nullptr) {
                by_service[*key] += flows;
            }
        }
        return by_service;
    });
}

uint64_t open_flows(const worker::WorkerSet& workers, const Reconciler& reconciler) {
    const worker::Inspector inspector = workers.inspect();
    const uint32_t ids =
        reconciler.read([](const ReconcilerState& state) { return state.compiler.ids().backends.size(); });
    uint64_t open = 0;
    for (uint8_t w = 0; w < inspector.workers(); ++w) {
        open += inspector.open_connections({w}, ids);
    }
    return open;
}

}  // namespace penstock::gateway
