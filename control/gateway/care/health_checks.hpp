// SPDX-License-Identifier: Apache-2.0
// healthCheckNodePort (HC-001 to HC-005): for each Service that has one, an HTTP server on that port of every
// NodePort address. It reports to the load balancer in front of the nodes whether this node has local
// endpoints. The servers use ordinary Linux sockets: the packets arrive through the TAP twin.
//
//   set(), set_addresses()  --->  claims per port, in order of arrival  --->  work(): open, close, retry
//
// Used by one thread. The servers' thread reads the counts.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "control/http/server.hpp"
#include "control/model/desired.hpp"
#include "control/model/observed.hpp"

namespace penstock::gateway {

// The response to a load balancer, for any path (HC-003).
[[nodiscard]] http::Response health_check_answer(const std::string& namespace_name, const std::string& name,
                                                 uint32_t local_endpoints, bool gateway_is_well);

class HealthChecks {
 public:
    using Time = std::chrono::steady_clock::time_point;

    // `is_well`: health of the gateway itself; called on the servers' thread.
    explicit HealthChecks(std::function<bool()> is_well) : is_well_(std::move(is_well)) {}

    // Sets the health check of a service port in force.
    void set(const model::ServiceKey& key, const std::optional<model::HealthCheck>& check);
    // Sets the listen addresses; if empty, no health check is served.
    void set_addresses(std::vector<IpAddr> addresses);
    // Opens and closes sockets as required.
    void work(Time now);
    // The time of the next retry by work().
    [[nodiscard]] std::optional<Time> due() const;

    // FailedToStartServiceHealthcheck: for Services with a port that could not be opened or belongs to
    // another Service. Sorted.
    [[nodiscard]] std::vector<model::ObservedNotice> notices() const;
    // The ports served now.
    [[nodiscard]] std::vector<L4Port> open_ports() const;

    // Retry interval of a port that was in use by another program (HC-005).
    static constexpr std::chrono::seconds kRetry{30};

 private:
    using ServiceName = std::pair<std::string, std::string>;
    // Ports of a Service arrive separately, and another of them may carry the check later. Only the Service
    // matters.
    struct Service {
        std::map<model::ServiceKey, model::HealthCheck> ports;
        L4Port claimed = 0;
        std::shared_ptr<std::atomic<uint32_t>> local_endpoints = std::make_shared<std::atomic<uint32_t>>(0);
    };
    struct Port {
        std::vector<ServiceName> claims;  // the first one owns the port (SVC-018)
        ServiceName served;
        std::unique_ptr<http::Server> server;
        std::string failure;
        Time retry_at{};
    };

    void claim(const ServiceName& name, Service& service, L4Port port);
    void serve(L4Port number, Port& port, Time now);

    const std::function<bool()> is_well_;
    // Shared by all ports: a node may have a thousand.
    const std::shared_ptr<http::Loop> loop_ = std::make_shared<http::Loop>();
    std::vector<IpAddr> addresses_;
    std::map<ServiceName, Service> services_;
    std::map<L4Port, Port> ports_;
    std::set<L4Port> changed_;
};

}  // namespace penstock::gateway
