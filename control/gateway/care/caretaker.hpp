// The gateway's thread for all that is neither packets nor configuration: it opens and closes the ports on which others ask after our
// health, looks for what is amiss on this host, keeps the list of what the gateway has to say about Services, and hands the prober its
// work; and it keeps VIPs on the twins. Here things may take their time; nobody who forwards waits for it.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "control/gateway/apply/reconciler.hpp"
#include "control/gateway/care/health_checks.hpp"
#include "control/gateway/care/observed.hpp"
#include "control/gateway/care/port_faults.hpp"
#include "control/gateway/care/prober.hpp"
#include "control/gateway/care/proxy_health.hpp"
#include "control/gateway/care/vip_presence.hpp"
#include "control/gateway/program/loop_watch.hpp"

namespace penstock::gateway {

struct CaretakerOptions {
    model::GatewayMode mode = model::GatewayMode::External;
    std::string healthz;  // ADDRESS:PORT; "": none
    std::chrono::seconds sync_limit{60};
    bool allow_empty = false;  // well without a configuration
    bool drained = false;      // to begin with
    // The loops of the process. Any thread; null: none are watched.
    std::function<std::shared_ptr<const LoopHealth>()> loops;
    // The ports, by NicPortId, what their twins have, and the routes in force. The caretaker's thread; null: no port is looked at.
    std::function<std::vector<PortState>()> ports;
    TwinSubnets twins;
    std::function<std::shared_ptr<const route::RouteTable>()> routes;
    // Whether the gateway is well, when that has changed and at start. The caretaker's thread.
    std::function<void(bool is_well)> on_health;
    // Service ports whose flows met the end of the SNAT ports since the last call. The caretaker's thread.
    std::function<std::vector<model::ServiceKey>()> exhausted;
    // The list of observed() is another one. The caretaker's thread.
    std::function<void()> on_observed;
    std::optional<VipPresenceOptions>
        vip_presence;  // called on the caretaker's thread, and in stop(); none: off
};

class Caretaker {
 public:
    // `reconciler` outlives it. Errors are the kernel's.
    static Result<std::unique_ptr<Caretaker>> create(CaretakerOptions options, Reconciler& reconciler);
    ~Caretaker();  // stop(), and closes what it opened
    Caretaker(const Caretaker&) = delete;
    Caretaker& operator=(const Caretaker&) = delete;

    // Once. A port that is taken is no error, but a notice or a warning.
    void start();
    // on_observed is not called any more, and VIPs are withdrawn. Idempotent.
    void stop();

    // DRAIN-006: all health checks answer 503, and no VIP is present, until it is taken back. Any thread.
    void set_drained(bool drained);
    [[nodiscard]] bool drained() const noexcept { return drained_; }

    // Why the desired state keeps all VIPs off the link (PRESENCE-005); "": it does not, or VIP presence is off. Any thread.
    [[nodiscard]] std::string vips_withheld() const;

    // Something of what the options yield has changed. Any thread.
    void look_again();
    // Why the gateway is not well, and why a restart would mend it (proxy_health.hpp); empty: it is. Any thread.
    [[nodiscard]] std::vector<std::string> why_not_well() const;
    [[nodiscard]] std::vector<std::string> why_not_live() const;
    // Rounds of its thread, at least one a second. Any thread.
    [[nodiscard]] uint64_t rounds() const noexcept { return rounds_.load(std::memory_order_relaxed); }

    // Any thread.
    [[nodiscard]] std::vector<model::ObservedNotice> observed() const;
    [[nodiscard]] ProbeSchedule::Counters probe_counters() const { return prober_->counters(); }

 private:
    using Clock = std::chrono::steady_clock;

    Caretaker(CaretakerOptions options, Reconciler& reconciler);
    void run(const std::stop_token& stopped);
    void hear(const Publication& publication);
    void take_over(const Publication& publication, const std::set<model::ServiceKey>& changed);
    void withhold_vips(const std::string& why);
    void work(Clock::time_point now);
    void look_after_healthz(Clock::time_point now);
    [[nodiscard]] std::shared_ptr<const drivers::MirroredState> mirror() const;
    void look_at_ports();
    void tell_health(Clock::time_point now);
    void tell();
    [[nodiscard]] ProxyFacts facts() const;

    const CaretakerOptions options_;
    Reconciler& reconciler_;
    std::atomic<bool> drained_{false};
    std::atomic<bool> node_eligible_{true};
    std::atomic<bool> has_state_{false};
    std::atomic<uint64_t> rounds_{0};
    std::atomic<std::chrono::system_clock::time_point> programmed_at_{std::chrono::system_clock::now()};

    mutable std::mutex mutex_;
    std::condition_variable_any news_;
    std::optional<Publication> publication_;  // the newest
    std::set<model::ServiceKey> changed_;     // up to it
    bool looks_again_ = false;
    std::vector<model::ObservedNotice> observed_;
    std::vector<std::string> port_faults_;
    std::string vips_withheld_;

    // The thread's.
    HealthChecks health_checks_;
    ExhaustionWatch exhaustion_;
    NodePortWatch node_ports_;
    std::optional<VipPresence> presence_;
    Clock::time_point look_at_{};  // for strangers on NodePorts
    Clock::time_point looked_at_{};
    std::unique_ptr<http::Server> healthz_;
    Clock::time_point healthz_at_{};
    std::shared_ptr<const Compiled> compiled_;                // in force; null: nothing yet
    std::shared_ptr<const route::RouteTable> routes_before_;  // when all ports were up
    std::optional<bool> told_health_;
    std::unique_ptr<Prober> prober_;
    std::jthread thread_;
};

}  // namespace penstock::gateway
