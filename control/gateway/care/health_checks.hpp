// healthCheckNodePort (HC-001 to HC-005): for each Service that has one, an HTTP server on that port of every NodePort address, which tells
// the load balancer in front of the nodes whether this one has endpoints of its own. Ordinary sockets of Linux: the packets come through
// the TAP twin.
//
//   set(), set_addresses()  --->  ports: who claims each, in the order of arrival  --->  work(): open, close, try again
//
// One thread works with it; the servers' thread reads the counts.
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

// What a load balancer gets to read, whatever path it asks for (HC-003).
[[nodiscard]] http::Response health_check_answer(const std::string& namespace_name, const std::string& name,
                                                 uint32_t local_endpoints, bool gateway_is_well);

class HealthChecks {
 public:
    using Time = std::chrono::steady_clock::time_point;

    // `is_well`: the gateway itself; called on the servers' thread.
    explicit HealthChecks(std::function<bool()> is_well) : is_well_(std::move(is_well)) {}

    // What the service port in force asks for.
    void set(const model::ServiceKey& key, const std::optional<model::HealthCheck>& check);
    // Where to listen; nowhere: none is served.
    void set_addresses(std::vector<IpAddr> addresses);
    // Brings the sockets in line with all that.
    void work(Time now);
    // When work() has something to try again.
    [[nodiscard]] std::optional<Time> due() const;

    // FailedToStartServiceHealthcheck: for those whose port could not be opened, or belongs to another Service. Sorted.
    [[nodiscard]] std::vector<model::ObservedNotice> notices() const;
    // Ports that are served now.
    [[nodiscard]] std::vector<L4Port> open_ports() const;

    // Of a port that somebody else had when it was tried (HC-005).
    static constexpr std::chrono::seconds kRetry{30};

 private:
    using ServiceName = std::pair<std::string, std::string>;
    // Ports of a Service travel alone, and the one that carries the check may become another: only the Service counts.
    struct Service {
        std::map<model::ServiceKey, model::HealthCheck> ports;
        L4Port claimed = 0;
        std::shared_ptr<std::atomic<uint32_t>> local_endpoints = std::make_shared<std::atomic<uint32_t>>(0);
    };
    struct Port {
        std::vector<ServiceName> claims;  // the first one has it (SVC-018)
        ServiceName served;
        std::unique_ptr<http::Server> server;
        std::string failure;
        Time retry_at{};
    };

    void claim(const ServiceName& name, Service& service, L4Port port);
    void serve(L4Port number, Port& port, Time now);

    const std::function<bool()> is_well_;
    const std::shared_ptr<http::Loop> loop_ =
        std::make_shared<http::Loop>();  // of all ports: a node may have a thousand
    std::vector<IpAddr> addresses_;
    std::map<ServiceName, Service> services_;
    std::map<L4Port, Port> ports_;
    std::set<L4Port> changed_;
};

}  // namespace penstock::gateway
