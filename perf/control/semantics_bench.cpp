// SPDX-License-Identifier: Apache-2.0
// Cost of the semantics at Penstock's design size: 5,000 Services of 50 endpoints each, with one slice and
// one external IP each; and one Service of 1,000 endpoints in slices of 100, as Kubernetes splits them. No
// bytes are decoded and nothing is sent.
//
// Output: lines of `name value unit`. Times are processor time of the only thread, which never waits. Other
// processes on the machine affect its caches, not its clock.
#include <malloc.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "control/semantics/engine.hpp"

namespace penstock::semantics {
namespace {

constexpr size_t kServices = 5'000;
constexpr size_t kEndpointsEach = 50;
constexpr size_t kBigServiceSlices = 10;
constexpr size_t kEndpointsInBigSlice = 100;
constexpr size_t kEndpointsTotal = kServices * kEndpointsEach + kBigServiceSlices * kEndpointsInBigSlice;
constexpr size_t kNodes = 1'000;
constexpr size_t kRepeats = 400;

void print(const std::string& name, double value, const char* unit) {
    std::printf("%s %.1f %s\n", name.c_str(), value, unit);
}

// Of this thread.
double processor_time_us() {
    timespec now{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) / 1e3;
}

double quantile(std::vector<double> values, double share) {
    std::ranges::sort(values);
    return values[static_cast<size_t>(share * static_cast<double>(values.size() - 1))];
}

size_t bytes_in_use() {
    const auto info = ::mallinfo2();
    return info.uordblks + info.hblkhd;
}

std::string dotted(size_t first, size_t number) {
    return std::to_string(first) + "." + std::to_string(number >> 16 & 255) + "." +
           std::to_string(number >> 8 & 255) + "." + std::to_string(number & 255);
}

kube::ObjectName name_of(size_t number) {
    return {.namespace_name = "team-" + std::to_string(number % 50),
            .name = "service-" + std::to_string(number)};
}

kube::ServicePtr make_service(size_t number) {
    kube::Service service;
    service.meta.namespace_name = name_of(number).namespace_name;
    service.meta.name = name_of(number).name;
    service.meta.creation_timestamp = "2024-01-01T00:00:00Z";
    service.cluster_ip = dotted(172, (16U << 16) + number);
    service.cluster_ips = {service.cluster_ip};
    service.ip_families = {"IPv4"};
    service.external_ips = {dotted(100, (64U << 16) + number)};
    service.ports = {{.name = "http", .port = 80}};
    return std::make_shared<const kube::Service>(std::move(service));
}

class Population {
 public:
    kube::EndpointSlice make_slice(size_t service, size_t endpoints) {
        kube::EndpointSlice slice;
        slice.meta.namespace_name = name_of(service).namespace_name;
        slice.meta.labels["kubernetes.io/service-name"] = name_of(service).name;
        slice.address_type = "IPv4";
        slice.ports = {{.name = "http", .port = 8080}};
        for (size_t i = 0; i < endpoints; ++i) {
            kube::Endpoint& one = slice.endpoints.emplace_back();
            // Not sorted by address, as Pods are not.
            const size_t number = next_++ * 2'654'435'761U % (size_t{1} << 24);
            one.address = dotted(10, number);
            one.ready = true;
            one.node_name = "node-" + std::to_string(number % kNodes) + ".eu-west-1.compute.internal";
            one.zone = "eu-west-1" + std::string(1, static_cast<char>('a' + number % 3));
        }
        return slice;
    }

 private:
    size_t next_ = 0;
};

// Each endpoint in turn becomes unready, or ready again.
std::vector<double> flip_endpoints(
    Engine& engine, const std::vector<std::pair<kube::ObjectName, kube::EndpointSlice>>& slices) {
    std::vector<double> took;
    auto current = slices;
    for (size_t i = 0; i < kRepeats; ++i) {
        auto& [name, slice] = current[i % current.size()];
        kube::Endpoint& one = slice.endpoints[i / current.size() % slice.endpoints.size()];
        one.ready = !*one.ready;
        kube::Changes changes;
        changes.slices[name] = std::make_shared<const kube::EndpointSlice>(slice);
        const auto start = processor_time_us();
        const Step step = engine.apply(changes);
        took.push_back(processor_time_us() - start);
        if (step.upsert.size() != 1) {
            std::fprintf(stderr, "a flip changed %zu service ports\n", step.upsert.size());
        }
    }
    return took;
}

void run() {
    Population population;
    kube::Changes all;
    std::vector<std::pair<kube::ObjectName, kube::EndpointSlice>> small;
    std::vector<std::pair<kube::ObjectName, kube::EndpointSlice>> big;
    for (size_t i = 0; i < kServices; ++i) {
        all.services[name_of(i)] = make_service(i);
        const kube::ObjectName slice_name{.namespace_name = name_of(i).namespace_name,
                                          .name = name_of(i).name + "-abcde"};
        kube::EndpointSlice slice = population.make_slice(i, kEndpointsEach);
        if (i % (kServices / 100) == 0) {
            small.emplace_back(slice_name, slice);
        }
        all.slices[slice_name] = std::make_shared<const kube::EndpointSlice>(std::move(slice));
    }
    all.services[name_of(kServices)] = make_service(kServices);
    for (size_t i = 0; i < kBigServiceSlices; ++i) {
        big.emplace_back(kube::ObjectName{.namespace_name = name_of(kServices).namespace_name,
                                          .name = name_of(kServices).name + "-" + std::to_string(i)},
                         population.make_slice(kServices, kEndpointsInBigSlice));
        all.slices[big.back().first] = std::make_shared<const kube::EndpointSlice>(big.back().second);
    }

    const Policy policy{.allowed_external_cidrs = {Prefix::parse("100.64.0.0/10").value()}};
    const size_t before = bytes_in_use();
    Engine engine(policy);
    engine.apply(all);
    const auto start = processor_time_us();
    Step first = engine.set_gateway({.gateway_name = "gw", .mode = model::GatewayMode::External});
    print("evaluate_all_ms", (processor_time_us() - start) / 1'000, "ms");
    print("service_ports", static_cast<double>(first.upsert.size()), "ports");
    first = {};
    print("bytes_per_endpoint",
          static_cast<double>(bytes_in_use() - before) / static_cast<double>(kEndpointsTotal), "bytes");

    for (const auto& [label, slices] : {std::pair{"50", &small}, {"1000", &big}}) {
        const std::vector<double> took = flip_endpoints(engine, *slices);
        print(std::string("one_endpoint_flip_") + label + "_p50_us", quantile(took, 0.5), "us");
        print(std::string("one_endpoint_flip_") + label + "_p99_us", quantile(took, 0.99), "us");
    }

    std::vector<double> created;
    for (size_t i = 0; i < kRepeats; ++i) {
        kube::Changes changes;
        changes.services[name_of(kServices + 1 + i)] = make_service(kServices + 1 + i);
        const auto began = processor_time_us();
        engine.apply(changes);
        created.push_back(processor_time_us() - began);
    }
    print("one_service_created_p50_us", quantile(created, 0.5), "us");
    print("one_service_created_p99_us", quantile(created, 0.99), "us");

    const auto audit_began = processor_time_us();
    const size_t differing = engine.audit().size();
    print("audit_ms", (processor_time_us() - audit_began) / 1'000, "ms");
    print("audit_differences", static_cast<double>(differing), "ports");
}

}  // namespace
}  // namespace penstock::semantics

int main() {
    penstock::semantics::run();
}
