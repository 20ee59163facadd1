// SPDX-License-Identifier: Apache-2.0
// Everything that exposes the state of penstock-sync: the pages for probes and scrapers, the status socket of
// penstockctl, and the reports to the service manager. Started last and stopped first, because it reads from
// all other parts.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "control/http/server.hpp"
#include "control/process/service_manager.hpp"
#include "control/sync/monitor_options.hpp"
#include "control/sync/service_watch.hpp"
#include "control/sync/status.hpp"
#include "control/sync/status_server.hpp"
#include "dataplane/base/result.hpp"

namespace penstock::sync {

// Sources of a reading. Each function is called on the monitor's threads and takes only as long as copying.
struct Watched {
    std::string version;   // of the program
    std::string identity;  // identifies its state versions
    std::function<kube::SourceStatus()> source;
    std::vector<std::function<GatewayStatus()>> gateways;  // in the order of --gateway
    std::function<kube::EventsStatus()> events;            // empty: no cluster to write Events to
    std::function<TlsStatus()> tls = {};                   // empty: no gateway is reached over TCP
    std::function<AddressStatus()> addresses = {};         // empty: it assigns no addresses
};

class Monitor {
 public:
    // Objects used by `watched` must outlive this object. Errors name the option.
    static Result<std::unique_ptr<Monitor>> start(const MonitorOptions& options, Watched watched,
                                                  const process::ServiceManager& service_manager = {});
    // 0 if no pages are served.
    [[nodiscard]] uint16_t http_port() const { return http_ == nullptr ? uint16_t{0} : http_->port(); }

 private:
    Monitor() = default;
    std::unique_ptr<http::Server> http_;
    std::unique_ptr<StatusServer> status_;
    std::unique_ptr<ServiceWatch> service_;  // null: no service manager
};

}  // namespace penstock::sync
