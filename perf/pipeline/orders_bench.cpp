// SPDX-License-Identifier: Apache-2.0
// Ending the flows of removed endpoints: the time for which a slice delays packets, and the time until all
// flows are ended, with a burst of a busy worker between every two slices. `one`: one endpoint of a thousand;
// `all`: every endpoint, as when a Service with all flows is deleted. Each list's connections are far apart
// in the table, so that each access is a cache miss.
#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/base/check.hpp"
#include "dataplane/pipeline/flow_orders.hpp"
#include "perf/harness/cycles.hpp"
#include "perf/harness/fingerprint.hpp"
#include "perf/harness/options.hpp"
#include "perf/harness/report.hpp"
#include "perf/pipeline/filled.hpp"
#include "perf/pipeline/gateway.hpp"

namespace penstock::perf {
namespace {

constexpr uint32_t kMillion = 1'000'000;
constexpr uint32_t kEndpoints = Gateway::kServices * Gateway::kEndpointsEach;  // of each protocol
// Additional delay of a packet by a slice, compared with a burst of its own size: G-none, a target. 20 us is
// a tenth of the limit of p99.
constexpr double kAimSliceUs = 20;

struct Cost {
    uint64_t slices = 0;
    uint64_t flows = 0;
    double total_ms = 0;
    double median_us = 0, p99_us = 0, longest_us = 0;
};

Cost end_flows(Gateway& gateway, Protocol protocol, uint32_t endpoints) {
    config::Snapshot snapshot = gateway.snapshot();
    auto orders = std::make_shared<conn::FlowOrders>();
    for (uint32_t i = 0; i < endpoints; ++i) {
        orders->orders.push_back({.backend = {(protocol == Protocol::Tcp ? 0 : kEndpoints) + i},
                                  .frontend = {},
                                  .frontend_port = 0});
    }
    snapshot.flow_orders = orders;
    pipeline::WorkerContext& context = gateway.context();
    const double cycles_per_us = static_cast<double>(cycles_per_second()) / 1e6;
    std::vector<uint64_t> slices;
    const uint64_t ended_before = context.count()[stats::Counter::EndedConnections].read();
    const uint64_t start = cycles_begin();
    while (context.flow_orders.done() < orders->last()) {
        const uint64_t before = cycles_begin();
        context.begin_round(&snapshot, {before});
        const uint32_t looked_at = pipeline::work_off_flow_orders(context);
        const uint64_t cycles = cycles_end() - before;
        context.own_segments.count = 0;  // as sent
        if (looked_at > 0) {
            slices.push_back(cycles - std::min(cycles, empty_span_cycles()));
        }
    }
    Cost cost;
    cost.total_ms = static_cast<double>(cycles_end() - start) / cycles_per_us / 1e3;
    cost.flows = context.count()[stats::Counter::EndedConnections].read() - ended_before;
    cost.slices = slices.size();
    std::ranges::sort(slices);
    const auto at = [&](double share) {
        return static_cast<double>(
                   slices[static_cast<size_t>(share * static_cast<double>(slices.size() - 1))]) /
               cycles_per_us;
    };
    cost.median_us = at(0.5);
    cost.p99_us = at(0.99);
    cost.longest_us = at(1);
    return cost;
}

void measure(uint32_t flows, Protocol protocol, uint32_t endpoints, std::string_view which) {
    const auto gateway = filled(flows, protocol);
    const Cost cost = end_flows(*gateway, protocol, endpoints);
    const uint64_t expected =
        uint64_t{gateway->context().connections.capacity()} > 0 ? flows / kEndpoints * endpoints : 0;
    PENSTOCK_CHECK(cost.flows >= expected * 9 / 10);
    const std::string name =
        std::string("orders.") + (protocol == Protocol::Tcp ? "tcp." : "udp.") + std::string(which);
    const std::string at = size_suffix(flows);
    print_value(name + ".flows" + at, static_cast<double>(cost.flows), "connections");
    print_value(name + ".slices" + at, static_cast<double>(cost.slices), "slices");
    print_value(name + ".total" + at, cost.total_ms, "ms");
    print_value(name + ".slice.median" + at, cost.median_us, "us");
    print_value(name + ".slice.p99" + at, cost.p99_us, "us");
    // One preemption of this program takes longer than any slice. On a quiet machine this is the longest
    // slice.
    print_value(name + ".slice.longest" + at, cost.longest_us, "us");
    print_aim_at_most(name + ".slice" + at, cost.p99_us, kAimSliceUs);
}

}  // namespace
}  // namespace penstock::perf

int main(int argc, char** argv) {
    using namespace penstock;
    using namespace penstock::perf;
    constexpr std::array<uint32_t, 1> kSizes = {kMillion};
    constexpr std::array<uint32_t, 1> kQuickSizes = {100'000};
    const Options options = read_options(argc, argv, kSizes, kQuickSizes, {});
    print_fingerprint();
    for (const uint32_t flows : options.sizes) {
        if (!fits_memory("orders", flows, Gateway::memory_needed(flows / 9 * 10 + 64))) {
            continue;
        }
        for (const Protocol protocol : {Protocol::Udp, Protocol::Tcp}) {
            measure(flows, protocol, 1, "one");
            measure(flows, protocol, kEndpoints, "all");
        }
    }
    return 0;
}
