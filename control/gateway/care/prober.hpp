// Asks endpoints how they are, on a thread of its own, by plain non-blocking sockets of Linux: whatever it sends leaves through the TAP
// twin like anything else from this host, and so is never load balanced, not even to a VIP (HC-009).
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

// What became of one question.
struct ProbeAnswer {
    bool succeeded = false;
    std::string why;  // of a failure
};
// The answer that an HTTP server began with these bytes; nullopt: too little to tell.
[[nodiscard]] std::optional<ProbeAnswer> http_answer(std::string_view received);

// Questions open at once. Each holds a descriptor, so at most half of those that the process may have (RLIMIT_NOFILE, 1,024 where nobody
// says otherwise); beyond 4,096 one thread would not keep up with their deadlines.
[[nodiscard]] size_t probes_open_max();

class Prober {
 public:
    // Called on the prober's thread with what is known anew, at most every kReportEvery: each one makes the gateway compile and publish.
    using Report = std::function<void(ProbeSchedule::Results)>;
    static constexpr std::chrono::milliseconds kReportEvery{100};

    // Errors where the kernel grants no descriptors.
    static Result<std::unique_ptr<Prober>> start(Report report);
    ~Prober();
    Prober(const Prober&) = delete;
    Prober& operator=(const Prober&) = delete;

    // Service ports as they are in force now; null: not at all. Any thread.
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
