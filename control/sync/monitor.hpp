// Everything that shows what penstock-sync does: the pages for probes and scrapers, and the socket that penstockctl asks. Started last and
// ended first, for it looks at all the rest.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "control/http/server.hpp"
#include "control/sync/monitor_options.hpp"
#include "control/sync/status.hpp"
#include "control/sync/status_server.hpp"
#include "dataplane/base/result.hpp"

namespace penstock::sync {

// What a reading is made of. Each is called on the monitor's threads and takes no longer than copying.
struct Watched {
    std::string version;   // of the program
    std::string identity;  // the source of its state versions
    std::function<kube::SourceStatus()> source;
    std::vector<std::function<GatewayStatus()>> gateways;  // in the order of --gateway
    std::function<kube::EventsStatus()> events;            // empty: there is no cluster to tell
    std::function<TlsStatus()> tls = {};                   // empty: no gateway is reached over TCP
};

class Monitor {
 public:
    // What `watched` calls outlives this. Errors name the option.
    static Result<std::unique_ptr<Monitor>> start(const MonitorOptions& options, Watched watched);
    // 0 where there are no pages.
    [[nodiscard]] uint16_t http_port() const { return http_ == nullptr ? uint16_t{0} : http_->port(); }

 private:
    Monitor() = default;
    std::unique_ptr<http::Server> http_;
    std::unique_ptr<StatusServer> status_;
};

}  // namespace penstock::sync
