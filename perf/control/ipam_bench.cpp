// SPDX-License-Identifier: Apache-2.0
// Cost of address allocation at Penstock's design size: 10,000 dual-stack Services on three pools, each with
// an IPv4 range and an IPv6 /64.
//
//   ipam_bench [--quick]     (--quick: 1,000 Services)
//
// Output: lines of `name value unit`. Times are processor time of the only thread, which never waits. The
// yardstick of a change is an allocation of everything in the same run (`..._ratio`).
#include <malloc.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "control/ipam/allocator.hpp"
#include "control/ipam/pool_rules.hpp"
#include "control/kube/pool_values.hpp"

namespace penstock::ipam {
namespace {

constexpr size_t kRepeats = 1'000;

void print(const char* name, double value, const char* unit) {
    std::printf("%s %.2f %s\n", name, value, unit);
}

// Of this thread.
double processor_time_us() {
    timespec now{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) / 1e3;
}

double heap_mib() {
    const struct mallinfo2 info = ::mallinfo2();
    return static_cast<double>(info.uordblks + info.hblkhd) / (1024.0 * 1024.0);
}

using ServicePtr = std::shared_ptr<const kube::Service>;

ServicePtr service_number(size_t number) {
    kube::Service service;
    service.meta = {.namespace_name = "team-" + std::to_string(number % 100),
                    .name = "service-" + std::to_string(number),
                    .uid = "uid-" + std::to_string(number),
                    .creation_timestamp = "2026-01-01T00:00:00Z",
                    .labels = {{"app", "web"}}};
    service.type = "LoadBalancer";
    service.load_balancer_class = "penstock.io/gateway";
    service.ip_families = {"IPv4", "IPv6"};
    service.ip_family_policy = "RequireDualStack";
    service.ports = {{.name = "http", .port = 80}, {.name = "https", .port = 443}};
    service.selector = {{"app", "web"}};
    return std::make_shared<const kube::Service>(std::move(service));
}

kube::ObjectName name_of(const kube::Service& service) {
    return {.namespace_name = service.meta.namespace_name, .name = service.meta.name};
}

// The three pools have exactly `addresses` IPv4 addresses together.
std::vector<Pool> pools_with(size_t addresses) {
    std::vector<Pool> pools;
    const uint32_t each = static_cast<uint32_t>(addresses / 3) + 1;
    for (uint32_t i = 0; i < 3; ++i) {
        const auto at = [i](uint32_t offset) {
            return IpAddr::v4(20, static_cast<uint8_t>(i), static_cast<uint8_t>(offset >> 8),
                              static_cast<uint8_t>(offset));
        };
        const uint32_t count = i < 2 ? each : static_cast<uint32_t>(addresses) - 2 * each;
        pools.push_back({.name = "pool-" + std::to_string(i),
                         .ranges = {{.first = at(0), .last = at(count - 1)},
                                    *kube::parse_address_range("2001:db8:" + std::to_string(i) + "::/64")}});
    }
    return pools;
}

// The Services as the API server has them when the allocations have been written to their status.
Changes with_status(const Changes& given, const Allocator& allocator) {
    Changes result{.pools = given.pools};
    for (const auto& [name, service] : given.services) {
        kube::Service written = *service;
        for (const AllocatedAddress& entry : allocator.find(name)->addresses) {
            written.ingress.push_back({.ip = entry.address.to_string()});
        }
        written.conditions = kube::marker("True");
        result.services[name] = std::make_shared<const kube::Service>(std::move(written));
    }
    return result;
}

double median(std::vector<double>& values) {
    std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2));
    return values[values.size() / 2];
}

// The median cost of removing a Service and adding it again, per change.
double replace_one(Allocator& allocator, const std::vector<ServicePtr>& services) {
    std::vector<double> costs;
    for (size_t i = 0; i < kRepeats; ++i) {
        const ServicePtr& service = services[i * 7919 % services.size()];
        const kube::ObjectName name = name_of(*service);
        const double begin = processor_time_us();
        allocator.apply({.services = {{name, nullptr}}});
        allocator.apply({.services = {{name, service}}});
        costs.push_back((processor_time_us() - begin) / 2);
    }
    return median(costs);
}

int run(size_t count) {
    std::vector<ServicePtr> services;
    Changes all{.pools = pools_with(count)};
    for (size_t i = 0; i < count; ++i) {
        services.push_back(service_number(i));
        all.services[name_of(*services.back())] = services.back();
    }
    Allocator allocator{semantics::Policy{}};
    const double heap_before = heap_mib();
    double begin = processor_time_us();
    allocator.apply(all);
    const double from_nothing_us = processor_time_us() - begin;
    print("ipam_services", static_cast<double>(count), "services");
    print("ipam_from_nothing", from_nothing_us / 1e3, "ms");
    print("ipam_memory", (heap_mib() - heap_before) * 1024 * 1024 / static_cast<double>(count),
          "bytes/service");

    const Changes written = with_status(all, allocator);
    begin = processor_time_us();
    const size_t moved = allocator.apply(written).size();
    print("ipam_status_echo", (processor_time_us() - begin) / 1e3, "ms");
    Allocator restarted{semantics::Policy{}};
    begin = processor_time_us();
    restarted.apply(written);
    print("ipam_restart", (processor_time_us() - begin) / 1e3, "ms");
    size_t different = moved;
    for (const ServicePtr& service : services) {
        different += *restarted.find(name_of(*service)) != *allocator.find(name_of(*service)) ? 1 : 0;
    }
    print("ipam_moved_by_restart", static_cast<double>(different), "services");

    const double one_us = replace_one(allocator, services);
    print("ipam_one_change", one_us, "us");
    print("ipam_one_change_ratio", one_us / from_nothing_us * static_cast<double>(count),
          "times the share of one Service in ipam_from_nothing");

    // All pools are exhausted, and a tenth of the Services waits.
    Changes waiting;
    for (size_t i = count; i < count + count / 10; ++i) {
        const ServicePtr service = service_number(i);
        waiting.services[name_of(*service)] = service;
    }
    allocator.apply(waiting);
    print("ipam_one_change_with_waiting", replace_one(allocator, services), "us");
    return different == 0 ? 0 : 1;
}

}  // namespace
}  // namespace penstock::ipam

int main(int argc, char** argv) {
    return penstock::ipam::run(argc > 1 && std::strcmp(argv[1], "--quick") == 0 ? 1'000 : 10'000);
}
