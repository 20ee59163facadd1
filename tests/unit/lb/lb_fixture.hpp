// SPDX-License-Identifier: Apache-2.0
// One-line builders of Services, backends and frontends for the tests of this room.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "dataplane/lb/service_table.hpp"

namespace penstock::lb::test {

inline IpAddr ip(const char* text) {
    return IpAddr::parse(text).value();
}

// 10.2.x.y:8080 with weight 1, numbered from `first`.
inline std::vector<Backend> make_backends(uint32_t count, uint32_t first = 0) {
    std::vector<Backend> made;
    for (uint32_t i = first; i < first + count; ++i) {
        made.push_back({.id = {i}, .address = IpAddr::v4(Be32::from_host(0x0a020000u + i)), .port = 8080});
    }
    return made;
}

inline std::shared_ptr<Service> make_service(uint32_t id, std::string name,
                                             SchedulerKind scheduler = SchedulerKind::RoundRobin,
                                             std::vector<Backend> backends = make_backends(2)) {
    auto service = std::make_shared<Service>();
    service->id = {id};
    service->namespace_name = "default";
    service->name = std::move(name);
    service->scheduler = scheduler;
    service->sets.resize(1);
    service->sets[0].usable = std::move(backends);
    prepare(service->sets[0], scheduler);
    return service;
}

inline Frontend frontend(FrontendClass cls, const char* address, L4Port port, Protocol protocol,
                         std::shared_ptr<const Service> service) {
    return {.address = ip(address),
            .port = port,
            .protocol = protocol,
            .cls = cls,
            .service = std::move(service)};
}

}  // namespace penstock::lb::test
