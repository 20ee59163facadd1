// SPDX-License-Identifier: Apache-2.0
#include "perf/control/population.hpp"

#include <utility>

#include "control/rpc/state_message.hpp"
#include "dataplane/base/ip.hpp"

namespace penstock::perf {
namespace {

constexpr uint32_t kNodes = 1'000;

std::string address(uint8_t first, uint32_t number) {
    return IpAddr::v4(first, static_cast<uint8_t>(number >> 16), static_cast<uint8_t>(number >> 8),
                      static_cast<uint8_t>(number))
        .to_string();
}

void set_version(v1::StateVersion& message, uint64_t version) {
    message.set_source("gateway-bench");
    message.set_version(version);
}

void add_frontend(v1::Service& service, v1::FrontendClass cls, const std::string& at, uint32_t port) {
    v1::Frontend& frontend = *service.add_frontends();
    frontend.set_class_(cls);
    frontend.set_address(at);
    frontend.set_port(port);
}

}  // namespace

v1::Service service(const Population& population, uint32_t number, uint32_t moved) {
    v1::Service message;
    message.mutable_key()->set_namespace_("team-" + std::to_string(number % 100));
    message.mutable_key()->set_name("service-" + std::to_string(number));
    message.mutable_key()->set_port_name("http");
    message.mutable_key()->set_protocol(v1::PROTOCOL_TCP);
    message.set_service_port(80);
    message.set_scheduler(v1::SCHEDULER_RR);
    v1::BackendSet& set = *message.add_sets();
    set.set_source(number % 4 == 0 ? v1::SOURCE_MODE_KEEP : v1::SOURCE_MODE_TRANSLATE);
    for (uint32_t i = 0; i < population.endpoints; ++i) {
        v1::Endpoint& endpoint = *set.add_endpoints();
        const uint32_t place = number * population.endpoints + i;
        const bool is_moving = i + 1 == population.endpoints && moved > 0;
        endpoint.set_address(is_moving ? address(11, (number * 64 + moved) & 0xffffff) : address(10, place));
        endpoint.set_port(8'080);
        endpoint.set_node_name("node-" + std::to_string(place % kNodes) + ".example");
        endpoint.set_zone("zone-" + std::to_string(place % 3));
    }
    add_frontend(message, v1::FRONTEND_CLASS_CLUSTER_IP, address(172, number), 80);
    add_frontend(message, v1::FRONTEND_CLASS_LOAD_BALANCER_IP, address(100, number), 80);
    add_frontend(message, v1::FRONTEND_CLASS_NODE_PORT, "", 30'000 + number);
    return message;
}

std::vector<std::string> full_state(const Population& population, uint64_t version) {
    std::vector<std::string> parts;
    v1::StateMessage part;
    size_t bytes = 0;
    const auto cut = [&](bool more) {
        set_version(*part.mutable_full()->mutable_version(), version);
        part.mutable_full()->set_more(more);
        parts.push_back(part.SerializeAsString());
        part.Clear();
        bytes = 0;
    };
    for (uint32_t number = 0; number < population.services; ++number) {
        v1::Service next = service(population, number);
        const size_t size = next.ByteSizeLong();
        if (bytes > 0 && bytes + size > rpc::kPartBytes) {
            cut(true);
        }
        bytes += size;
        *part.mutable_full()->add_services() = std::move(next);
    }
    cut(false);
    return parts;
}

std::string one_endpoint(const Population& population, uint32_t number, uint32_t moved, uint64_t version) {
    v1::StateMessage message;
    v1::StateDelta& delta = *message.mutable_delta();
    set_version(*delta.mutable_base(), version - 1);
    set_version(*delta.mutable_version(), version);
    *delta.add_upsert() = service(population, number, moved);
    return message.SerializeAsString();
}

}  // namespace penstock::perf
