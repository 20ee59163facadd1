// SPDX-License-Identifier: Apache-2.0
// Probes endpoints on its own thread, by ordinary non-blocking Linux sockets. Probe packets leave through the
// TAP twin as all other packets of this host do, and are therefore never load-balanced, not even to a VIP
// (HC-009).
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "control/gateway/care/probes.hpp"
#include "dataplane/base/result.hpp"

namespace penstock::gateway {

// The result of one probe.
struct ProbeAnswer {
    bool succeeded = false;
    std::string why;  // reason of a failure
};
// Evaluates the first bytes of an HTTP response; nullopt: not enough bytes yet.
[[nodiscard]] std::optional<ProbeAnswer> http_answer(std::string_view received);

// Maximum number of open probes. Each holds a descriptor, so at most half of the process's descriptors
// (RLIMIT_NOFILE, 1,024 by default) are used. Beyond 4,096 one thread could not keep up with their deadlines.
[[nodiscard]] size_t probes_open_max();

class Prober {
 public:
    // Called on the prober's thread with new results, at most every kReportEvery: each call makes the gateway
    // compile and publish.
    using Report = std::function<void(ProbeSchedule::Results)>;
    static constexpr std::chrono::milliseconds kReportEvery{100};

    // Errors if the kernel grants no descriptors.
    static Result<std::unique_ptr<Prober>> start(Report report);
    ~Prober();
    Prober(const Prober&) = delete;
    Prober& operator=(const Prober&) = delete;

    // The service ports in force; null: removed. Any thread.
    void set(std::vector<std::pair<model::ServiceKey, std::shared_ptr<const model::Service>>> services);
    // Any thread.
    [[nodiscard]] ProbeSchedule::Counters counters() const;

 private:
    class Loop;
    explicit Prober(std::unique_ptr<Loop> loop);
    std::unique_ptr<Loop> loop_;
    std::jthread thread_;
};

}  // namespace penstock::gateway
