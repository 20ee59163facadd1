// SPDX-License-Identifier: Apache-2.0
// Prometheus metrics at /metrics. The names are derived from the lists of the counters themselves
// (stats/counters.hpp, base/verdict.hpp), so a new counter is exported as a new metric:
// penstock_<counter>_total{worker=}, penstock_drops_total{reason=, worker=}, and one family for each value of
// a service port, labelled namespace, service, port, protocol. Backends have no series of their own, because
// there may be 250,000.
#pragma once

#include <prometheus/metric_family.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "control/http/server.hpp"
#include "control/metrics/reading.hpp"
#include "dataplane/base/result.hpp"

namespace penstock::metrics {

[[nodiscard]] std::vector<prometheus::MetricFamily> families(const Reading& reading);

// Serves the result of `read` at each scrape, on its own threads (control/http/server.hpp).
class Exporter {
 public:
    // `address` is ADDRESS:PORT. Unavailable names the address.
    static Result<std::unique_ptr<Exporter>> start(const std::string& address, std::function<Reading()> read);

 private:
    explicit Exporter(std::unique_ptr<http::Server> server) : server_(std::move(server)) {}
    std::unique_ptr<http::Server> server_;
};

}  // namespace penstock::metrics
