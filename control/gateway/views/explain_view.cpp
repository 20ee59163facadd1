// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/views/explain_view.hpp"

#include <algorithm>

#include "control/gateway/compile/selection_trace.hpp"
#include "control/gateway/views/affinity_view.hpp"
#include "control/rpc/convert.hpp"

namespace penstock::gateway {
namespace {

void add_step(v1::Explanation& out, const std::string& stage, const std::string& finding) {
    v1::ExplainStep& message = *out.add_steps();
    message.set_stage(stage);
    message.set_finding(finding);
}

}  // namespace

Result<uint64_t> ExplainView::clear_affinity(const rpc::AffinityFilter& filter) const {
    if (!filter.name.empty()) {
        const auto compiled =
            running_.reconciler.read([](const ReconcilerState& state) { return state.compiler.compiled(); });
        const bool exists =
            std::any_of(compiled->services.begin(), compiled->services.end(), [&](const auto& entry) {
                return entry.first.namespace_name == filter.namespace_name && entry.first.name == filter.name;
            });
        if (!exists) {
            return fail(Errc::NotFound, "there is no service " + filter.namespace_name + "/" + filter.name);
        }
    }
    return running_.workers.clear_affinity(
        [&](const worker::AffinityView& view) { return matches(filter, view); });
}

v1::SetDrainedResponse ExplainView::set_drained(const v1::SetDrainedRequest& request) {
    running_.caretaker.set_drained(request.drained());
    v1::SetDrainedResponse out;
    out.set_drained(request.drained());
    out.set_open_connections(running_.open_connections());
    if (request.drained() && request.until_restart()) {
        out.set_not_kept("the drain was requested until the next start");
    } else if (const Status kept = running_.drain_file.set(request.drained()); !kept) {
        // Without a state file a restart ends every drain, so an undrain needs no file either.
        if (request.drained() || kept.error().code != Errc::Unsupported) {
            out.set_not_kept(kept.error().what);
        }
    }
    const worker::Inspector inspector = running_.workers.inspect();
    for (uint8_t w = 0; w < inspector.workers(); ++w) {
        out.set_connections(out.connections() + inspector.worker({w}).connections);
    }
    return out;
}

Result<v1::FailBackResponse> ExplainView::fail_back() {
    if (running_.copies == nullptr) {
        return fail(Errc::Outdated, "this gateway has no plan of shares (--shares)");
    }
    PENSTOCK_TRY(const uint64_t shares, running_.copies->fail_back());
    v1::FailBackResponse out;
    for (uint32_t number = 0; number < shares::kSharesMax; ++number) {
        if ((shares >> number & 1) != 0) {
            out.add_shares(number);
        }
    }
    return out;
}

Result<v1::Explanation> ExplainView::explain(const rpc::ExplainQuestion& question) const {
    const worker::Inspector inspector = running_.workers.inspect();
    const uint32_t port = question.port.value_or(inspector.arrival_port(question.key.source).value);
    if (port >= running_.ports.size()) {
        return fail(Errc::InvalidArgument, "port " + std::to_string(port) +
                                               " does not exist; the last one is " +
                                               std::to_string(running_.ports.size() - 1));
    }
    const uint16_t queues = running_.ports[port]->facts().rx_queues;
    if (question.queue >= queues) {
        return fail(Errc::InvalidArgument, "queue " + std::to_string(question.queue) +
                                               " does not exist; the port's last one is " +
                                               std::to_string(queues - 1));
    }
    const worker::Explanation found =
        inspector.explain({.key = question.key,
                           .port = {static_cast<uint8_t>(port)},
                           .receiver = {static_cast<uint8_t>(
                               question.queue % inspector.workers())},  // the queue assignment of PortPlan
                           .tcp_not_syn = question.tcp_not_syn});
    v1::Explanation out;
    for (const auto& step : found.steps) {
        add_step(out, step.stage, step.finding);
        if (found.frontend_class && std::string_view(step.stage) == "service") {
            for (const std::string& line : trace_of(question.key, *found.frontend_class)) {
                add_step(out, "service", line);
            }
        }
    }
    out.set_arrival_port(port);
    out.set_verdict(found.verdict);
    if (found.reason) {
        out.set_drop_reason(std::string(text_of(*found.reason).counter));
    }
    if (found.leaves_as) {
        *out.mutable_source_after() =
            rpc::to_proto(SocketAddress{found.leaves_as->source, found.leaves_as->source_port});
        *out.mutable_destination_after() =
            rpc::to_proto(SocketAddress{found.leaves_as->destination, found.leaves_as->destination_port});
    }
    if (found.egress.value < running_.ports.size()) {
        out.set_egress_twin(running_.ports[found.egress.value]->options().twin_name);
    }
    if (found.next_hop) {
        out.set_next_hop(found.next_hop->to_string());
    }
    if (found.next_hop_mac) {
        out.set_next_hop_mac(found.next_hop_mac->to_string());
    }
    return out;
}

std::vector<std::string> ExplainView::trace_of(const packet::FlowKey& key, lb::FrontendClass cls) const {
    // Copies shared pointers, so that the search does not block the reconciler.
    const auto [services, pod_cidrs] = running_.reconciler.read(
        [](const ReconcilerState& state) { return std::pair(state.asked, state.environment.pod_cidrs); });
    const auto met = frontend_at(services, cls, key.destination, key.destination_port, key.protocol);
    return met ? selection_trace(set_for(*met, pod_cidrs, key.source)) : std::vector<std::string>();
}

}  // namespace penstock::gateway
