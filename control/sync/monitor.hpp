// Everything that shows what penstock-sync does: the pages for probes and scrapers, and the socket that penstockctl asks. Started last and
// ended first, for it looks at all the rest.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "control/http/server.hpp"
#include "control/sync/status.hpp"
#include "control/sync/status_server.hpp"
#include "dataplane/base/result.hpp"

namespace penstock::sync {

inline constexpr const char* kDefaultSocket = "/run/penstock/penstock-sync.sock";

struct MonitorOptions {
    std::string http;                     // ADDRESS:PORT; "": no pages
    std::string socket = kDefaultSocket;  // absolute path; "": none
    // Somebody asked for this socket: without it the program must not start. The default one is worth a warning only, because a second
    // penstock-sync on a machine, or one without a right to /run, does its work without it.
    bool socket_is_wanted = false;
    std::string socket_group;  // who else may ask; "": nobody
};

// What a reading is made of. Each is called on the monitor's threads and takes no longer than copying.
struct Watched {
    std::string version;   // of the program
    std::string identity;  // the source of its state versions
    std::function<kube::SourceStatus()> source;
    std::vector<std::function<GatewayStatus()>> gateways;  // in the order of --gateway
    std::function<kube::EventsStatus()> events;            // empty: there is no cluster to tell
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
