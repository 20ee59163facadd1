// SPDX-License-Identifier: Apache-2.0
// The gateway's thread for everything except packets and configuration. It serves the health endpoints,
// detects faults on this host, keeps the list of notices about Services, assigns work to the prober, and
// keeps VIPs on the twins. This thread may block; the packet path never waits for it.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "control/gateway/apply/reconciler.hpp"
#include "control/gateway/care/health_checks.hpp"
#include "control/gateway/care/observed.hpp"
#include "control/gateway/care/port_faults.hpp"
#include "control/gateway/care/prober.hpp"
#include "control/gateway/care/proxy_health.hpp"
#include "control/gateway/care/vip_announcer.hpp"
#include "control/gateway/program/loop_watch.hpp"
#include "control/gateway/shares/gateway_shares.hpp"

namespace penstock::gateway {

struct CaretakerOptions {
    model::GatewayMode mode = model::GatewayMode::External;
    std::string healthz;  // ADDRESS:PORT; "": none
    std::chrono::seconds sync_limit{60};
    bool allow_empty = false;  // healthy without a configuration
    bool drained = false;      // initial state
    // The loops of the process. Any thread. Null: none are watched.
    std::function<std::shared_ptr<const LoopHealth>()> loops;
    // The ports by NicPortId, the subnets of their twins, and the routes in force. Called on the caretaker's
    // thread. Null: ports are not checked.
    std::function<std::vector<PortState>()> ports;
    TwinSubnets twins;
    std::function<std::shared_ptr<const route::RouteTable>()> routes;
    // Called on the caretaker's thread at start and after each change of the gateway's health.
    std::function<void(bool is_well)> on_health;
    // Returns the service ports with flows that found no free SNAT port since the last call. Called on the
    // caretaker's thread.
    std::function<std::vector<model::ServiceKey>()> exhausted;
    bool has_flow_records = false;  // the gateway writes them
    // Called on the caretaker's thread after the list of observed() has changed.
    std::function<void()> on_observed;
    // Its functions are called on the caretaker's thread, and in stop().
    VipAnnouncerOptions vips;
};

enum class VipsAtStop { Withdrawn, Kept };  // kept: for a successor

class Caretaker {
 public:
    // `reconciler` must outlive the caretaker. Errors are the kernel's.
    static Result<std::unique_ptr<Caretaker>> create(CaretakerOptions options, Reconciler& reconciler);
    ~Caretaker();  // stop(), and closes all sockets
    Caretaker(const Caretaker&) = delete;
    Caretaker& operator=(const Caretaker&) = delete;

    // Call once. A port that is in use causes a notice or a warning, not an error.
    void start();
    // Withdraws VIPs; on_observed is not called any more. Idempotent.
    void stop(VipsAtStop vips = VipsAtStop::Withdrawn);

    // DRAIN-006: while drained, all health checks answer 503, and VIPs are withdrawn in the order of
    // DrainOrder. Any thread.
    void set_drained(bool drained);
    [[nodiscard]] bool drained() const noexcept { return drained_; }

    // The shares of several gateways from now on. Only with VipPresenceMode::Routes and Arp. Any thread.
    // `returning`: those to which the gateway returns (ShareReturn).
    void set_shares(std::shared_ptr<const GatewayShares> shares, uint64_t returning);
    // The plan stays.
    void set_returning(uint64_t returning);
    // Workers answer on links for the addresses of these shares. Any thread.
    void set_held(HeldShares held);

    // The reason why the desired state withholds all VIPs from the link (PRESENCE-005). "" if they are not
    // withheld, or if VIP presence is off. Any thread.
    [[nodiscard]] std::string vips_withheld() const;

    // Presence of the VIPs and progress of a drain. Any thread; never null.
    [[nodiscard]] std::shared_ptr<const VipReport> vips() const { return announcer_.report(); }

    // Call when a value that the options return has changed. Any thread.
    void look_again();
    // The reasons why the gateway is not healthy, and those that a restart would remove (proxy_health.hpp).
    // Empty: none. Any thread.
    [[nodiscard]] std::vector<std::string> why_not_well() const;
    [[nodiscard]] std::vector<std::string> why_not_live() const;
    // The reasons why the start is not complete (proxy_health.hpp). Any thread.
    [[nodiscard]] std::vector<std::string> why_not_started() const;
    // Number of rounds of the thread, at least one per second. Any thread.
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
    // Returns when the next round is needed at the latest.
    Clock::time_point work(Clock::time_point now);
    [[nodiscard]] std::optional<Clock::time_point> announce_vips(std::span<const PortState> ports,
                                                                 Clock::time_point now);
    void look_after_healthz(Clock::time_point now);
    [[nodiscard]] std::shared_ptr<const drivers::MirroredState> mirror() const;
    void look_at_ports(std::span<const PortState> ports);
    void report_health(Clock::time_point now);
    void report_notices();
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
    std::set<model::ServiceKey> changed_;     // between the last round and publication_
    bool looks_again_ = false;
    std::vector<model::ObservedNotice> observed_;
    std::vector<std::string> port_faults_;
    std::string vips_withheld_;
    std::shared_ptr<const GatewayShares> shares_;
    uint64_t returning_ = 0;
    HeldShares held_;

    // Used by the caretaker's thread only.
    HealthChecks health_checks_;
    ExhaustionWatch exhaustion_;
    NodePortWatch node_ports_;
    AccessLogWatch access_logs_;
    VipAnnouncer announcer_;
    Clock::time_point look_at_{};  // next check for listeners on NodePorts
    Clock::time_point looked_at_{};
    std::unique_ptr<http::Server> healthz_;
    Clock::time_point healthz_at_{};
    std::shared_ptr<const Compiled> compiled_;                // in force; null: nothing yet
    std::shared_ptr<const route::RouteTable> routes_before_;  // the routes while all ports were up
    std::optional<bool> reported_health_;
    std::unique_ptr<Prober> prober_;
    std::jthread thread_;
};

}  // namespace penstock::gateway
