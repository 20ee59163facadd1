// SPDX-License-Identifier: Apache-2.0
#include "control/sync/monitor.hpp"

#include <utility>

#include "control/log/log.hpp"
#include "control/sync/metrics.hpp"
#include "control/sync/pages.hpp"

namespace penstock::sync {
namespace {

ReadSync reader_of(Watched watched) {
    const auto started = std::chrono::steady_clock::now();
    return [watched = std::move(watched), started] {
        SyncReading reading{.version = watched.version,
                            .identity = watched.identity,
                            .uptime = std::chrono::duration_cast<std::chrono::milliseconds>(
                                std::chrono::steady_clock::now() - started),
                            .resident_bytes = resident_bytes(),
                            .source = watched.source()};
        for (const auto& gateway : watched.gateways) {
            reading.gateways.push_back(gateway());
        }
        if (watched.events) {
            reading.events = watched.events();
        }
        if (watched.tls) {
            reading.tls = watched.tls();
        }
        if (watched.addresses) {
            reading.addresses = watched.addresses();
        }
        return reading;
    };
}

}  // namespace

Result<std::unique_ptr<Monitor>> Monitor::start(const MonitorOptions& options, Watched watched,
                                                const process::ServiceManager& service_manager) {
    const ReadSync read = reader_of(std::move(watched));
    std::unique_ptr<Monitor> monitor(new Monitor());
    if (!options.http.empty()) {
        PENSTOCK_TRY_IN("--http", monitor->http_, http::Server::start(options.http, pages(read)));
        log::get("sync").info("serving /healthz, /readyz and /metrics on port {}", monitor->http_->port());
    }
    if (!options.socket.empty()) {
        auto server = StatusServer::start(options.socket, options.socket_group, read);
        if (server) {
            monitor->status_ = std::move(*server);
        } else if (options.socket_is_wanted) {
            return in_context("--listen", std::move(server.error()));
        } else {
            log::get("sync").warn(
                "cannot listen on the status socket, `penstockctl get sync` will not work: {}; set --listen "
                "to another socket, or off",
                server.error().what);
        }
    }
    if (service_manager.is_present()) {
        monitor->service_ = std::make_unique<ServiceWatch>(service_manager, read);
    }
    return monitor;
}

}  // namespace penstock::sync
