// Prometheus metrics at /metrics. Names come from the lists that yield the counters themselves (stats/counters.hpp, base/verdict.hpp), so a
// new counter is a new metric: penstock_<counter>_total{worker=}, penstock_drops_total{reason=, worker=}, and one family for each number of
// a service port, labelled namespace, service, port, protocol. Backends have no series of their own: there may be 250,000.
#pragma once

#include <prometheus/metric_family.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "control/metrics/reading.hpp"
#include "dataplane/base/result.hpp"

namespace penstock::metrics {

[[nodiscard]] std::vector<prometheus::MetricFamily> families(const Reading& reading);

// Serves what `read` says at each scrape, on threads of its own.
class Exporter {
 public:
    // `address` is HOST:PORT. Unavailable names it.
    static Result<std::unique_ptr<Exporter>> start(const std::string& address, std::function<Reading()> read);
    ~Exporter();
    Exporter(const Exporter&) = delete;
    Exporter& operator=(const Exporter&) = delete;

 private:
    struct Impl;
    explicit Exporter(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

}  // namespace penstock::metrics
