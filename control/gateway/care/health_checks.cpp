// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/care/health_checks.hpp"

#include <algorithm>

namespace penstock::gateway {
namespace {

// Names come from the cluster, where they are DNS labels. Any other text is quoted, so that it cannot become
// syntax.
std::string json_quoted(const std::string& text) {
    std::string out = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') {
            out += '\\';
        }
        out += static_cast<unsigned char>(c) < 0x20 ? '?' : c;
    }
    return out + "\"";
}

}  // namespace

http::Response health_check_answer(const std::string& namespace_name, const std::string& name,
                                   uint32_t local_endpoints, bool gateway_is_well) {
    const std::string count = std::to_string(local_endpoints);
    return {.status = local_endpoints > 0 && gateway_is_well ? 200 : 503,
            .body = "{\n\t\"service\": {\n\t\t\"namespace\": " + json_quoted(namespace_name) +
                    ",\n\t\t\"name\": " + json_quoted(name) + "\n\t},\n\t\"localEndpoints\": " + count +
                    ",\n\t\"serviceProxyHealthy\": " + (gateway_is_well ? "true" : "false") + "\n}",
            .content_type = "application/json",
            .headers = {{"X-Load-Balancing-Endpoint-Weight", count}}};
}

void HealthChecks::set(const model::ServiceKey& key, const std::optional<model::HealthCheck>& check) {
    const ServiceName name{key.namespace_name, key.name};
    const auto found = services_.find(name);
    if (found == services_.end() && !check) {
        return;
    }
    Service& service = found == services_.end() ? services_[name] : found->second;
    if (check) {
        service.ports.insert_or_assign(key, *check);
    } else {
        service.ports.erase(key);
    }
    const L4Port wanted = service.ports.empty() ? L4Port{0} : service.ports.begin()->second.port;
    if (wanted != 0) {
        service.local_endpoints->store(service.ports.begin()->second.local_endpoints,
                                       std::memory_order_relaxed);
    }
    claim(name, service, wanted);
}

// Port 0: none.
void HealthChecks::claim(const ServiceName& name, Service& service, L4Port port) {
    const L4Port before = std::exchange(service.claimed, port);
    if (before == port) {
        return;
    }
    if (before != 0) {
        std::erase(ports_.at(before).claims, name);
        changed_.insert(before);
    }
    if (port != 0) {
        ports_[port].claims.push_back(name);
        changed_.insert(port);
    }
}

void HealthChecks::set_addresses(std::vector<IpAddr> addresses) {
    if (addresses == addresses_) {
        return;
    }
    addresses_ = std::move(addresses);
    for (auto& [number, port] : ports_) {
        port.server.reset();
        changed_.insert(number);
    }
}

void HealthChecks::work(Time now) {
    for (auto& [number, port] : ports_) {
        if (!port.failure.empty() && port.retry_at <= now) {
            changed_.insert(number);
        }
    }
    // Ports are closed before others are opened: a Service may take over a port that another one releases.
    for (const L4Port number : changed_) {
        Port& port = ports_.at(number);
        if (port.claims.empty() || port.served != port.claims.front()) {
            port.server.reset();
        }
    }
    for (const L4Port number : std::exchange(changed_, {})) {
        Port& port = ports_.at(number);
        if (port.claims.empty()) {
            ports_.erase(number);
        } else if (port.server == nullptr) {
            serve(number, port, now);
        }
    }
    // Not earlier: when the name of a Service's only port changes, the Service has no port for a moment, but
    // its server still reads its count.
    std::erase_if(services_, [](const auto& entry) { return entry.second.ports.empty(); });
}

void HealthChecks::serve(L4Port number, Port& port, Time now) {
    port.served = port.claims.front();
    port.failure.clear();
    if (addresses_.empty()) {
        return;
    }
    // An IPv6 address of a twin may still be in duplicate address detection.
    http::ServerOptions options{.addresses = {}, .routes = {}, .addresses_may_be_absent = true};
    for (const IpAddr& address : addresses_) {
        options.addresses.push_back(SocketAddress{address, number}.to_string());
    }
    auto answer = [name = port.served, count = services_.at(port.served).local_endpoints,
                   is_well = is_well_] {
        return health_check_answer(name.first, name.second, count->load(std::memory_order_relaxed),
                                   is_well());
    };
    options.routes.emplace(http::kAnyPath, std::move(answer));
    auto server = http::Server::start(std::move(options), loop_);
    if (server) {
        port.server = std::move(*server);
    } else {
        port.failure = server.error().what;
        port.retry_at = now + kRetry;
    }
}

std::optional<HealthChecks::Time> HealthChecks::due() const {
    std::optional<Time> first;
    for (const auto& [number, port] : ports_) {
        if (!port.failure.empty()) {
            first = std::min(first.value_or(port.retry_at), port.retry_at);
        }
    }
    return first;
}

std::vector<model::ObservedNotice> HealthChecks::notices() const {
    std::vector<model::ObservedNotice> notices;
    const auto report = [&](const ServiceName& name, std::string message) {
        notices.push_back(
            {services_.at(name).ports.begin()->first,
             {model::Notice::Level::Warning, model::kFailedToStartHealthCheck, std::move(message)}});
    };
    for (const auto& [number, port] : ports_) {
        const std::string what = "healthCheckNodePort " + std::to_string(number);
        if (!port.failure.empty()) {
            report(port.claims.front(), what + ": " + port.failure);
        }
        for (size_t i = 1; i < port.claims.size(); ++i) {
            report(port.claims[i], what + " belongs to service " + port.claims.front().first + "/" +
                                       port.claims.front().second);
        }
    }
    std::ranges::sort(notices);
    return notices;
}

std::vector<L4Port> HealthChecks::open_ports() const {
    std::vector<L4Port> open;
    for (const auto& [number, port] : ports_) {
        if (port.server != nullptr) {
            open.push_back(number);
        }
    }
    return open;
}

}  // namespace penstock::gateway
