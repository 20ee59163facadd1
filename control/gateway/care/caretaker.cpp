// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/care/caretaker.hpp"

#include <algorithm>
#include <array>
#include <iterator>

#include "control/log/log.hpp"

namespace penstock::gateway {
namespace {

// Interval at which exhaustion of source ports is checked.
constexpr std::chrono::seconds kTick{1};
// Programs start and stop without notification. Reading every socket of the host takes milliseconds.
constexpr std::chrono::seconds kLookEvery{30};

std::string joined(const std::vector<std::string>& reasons) {
    std::string out;
    for (const std::string& reason : reasons) {
        out += (out.empty() ? "" : "; ") + reason;
    }
    return out;
}

}  // namespace

Caretaker::Caretaker(CaretakerOptions options, Reconciler& reconciler)
    : options_(std::move(options)),
      reconciler_(reconciler),
      health_checks_([this] { return is_well(facts(), Clock::now(), options_.sync_limit); }),
      announcer_(options_.vips, options_.drained) {
    drained_ = options_.drained;
}

Caretaker::~Caretaker() {
    stop();
}

Result<std::unique_ptr<Caretaker>> Caretaker::create(CaretakerOptions options, Reconciler& reconciler) {
    PENSTOCK_TRY(auto prober, Prober::start([&reconciler](ProbeSchedule::Results results) {
                     reconciler.probed(std::move(results));
                 }));
    std::unique_ptr<Caretaker> caretaker(new Caretaker(std::move(options), reconciler));
    caretaker->prober_ = std::move(prober);
    return caretaker;
}

void Caretaker::start() {
    reconciler_.set_published_listener([this](const Publication& publication) { hear(publication); });
    reconciler_.set_answered_listener([this] { look_again(); });
    // No change of the state in force already will be reported. A state that is compiled, but not yet in
    // every worker, is not in it (PRESENCE-001).
    Publication now = reconciler_.in_force();
    {
        const std::lock_guard lock(mutex_);
        for (const auto& [key, programmed] : now.compiled->services) {
            changed_.insert(key);
        }
        if (!publication_) {
            node_eligible_ = now.node_eligible;
            has_state_ = now.has_state;
            publication_ = std::move(now);
        }
    }
    thread_ = std::jthread([this](const std::stop_token& stopped) { run(stopped); });
}

void Caretaker::stop(VipsAtStop vips) {
    reconciler_.set_published_listener(nullptr);
    reconciler_.set_answered_listener(nullptr);
    if (thread_.joinable()) {
        thread_.request_stop();
        thread_.join();
        if (vips == VipsAtStop::Withdrawn) {
            announcer_.withdraw(*mirror());
        }
    }
}

void Caretaker::set_drained(bool drained) {
    drained_ = drained;
    look_again();
}

void Caretaker::look_again() {
    {
        const std::lock_guard lock(mutex_);
        looks_again_ = true;
    }
    news_.notify_all();
}

void Caretaker::set_shares(std::shared_ptr<const GatewayShares> shares, uint64_t returning) {
    {
        const std::lock_guard lock(mutex_);
        shares_ = std::move(shares);
        returning_ = returning;
    }
    look_again();
}

void Caretaker::set_returning(uint64_t returning) {
    {
        const std::lock_guard lock(mutex_);
        returning_ = returning;
    }
    look_again();
}

void Caretaker::set_held(HeldShares held) {
    {
        const std::lock_guard lock(mutex_);
        held_ = std::move(held);
    }
    look_again();
}

std::string Caretaker::vips_withheld() const {
    const std::lock_guard lock(mutex_);
    return vips_withheld_;
}

std::vector<std::string> Caretaker::why_not_well() const {
    return gateway::why_not_well(facts(), Clock::now(), options_.sync_limit);
}

std::vector<std::string> Caretaker::why_not_live() const {
    return gateway::why_not_live(facts(), Clock::now(), options_.sync_limit);
}

std::vector<std::string> Caretaker::why_not_started() const {
    return gateway::why_not_started(facts());
}

std::shared_ptr<const drivers::MirroredState> Caretaker::mirror() const {
    return reconciler_.read([](const ReconcilerState& state) { return state.mirror; });
}

// Runs on the reconciler's thread.
void Caretaker::hear(const Publication& publication) {
    node_eligible_ = publication.node_eligible;
    has_state_ = publication.has_state;
    programmed_at_ = std::chrono::system_clock::now();
    {
        const std::lock_guard lock(mutex_);
        changed_.insert(publication.changed.begin(), publication.changed.end());
        publication_ = publication;
    }
    news_.notify_all();
}

void Caretaker::run(const std::stop_token& stopped) {
    auto next_tick = Clock::now();
    while (!stopped.stop_requested()) {
        std::optional<Publication> publication;
        std::set<model::ServiceKey> changed;
        {
            std::unique_lock lock(mutex_);
            news_.wait_until(lock, stopped, next_tick, [this] { return publication_ || looks_again_; });
            publication = std::exchange(publication_, std::nullopt);
            changed.swap(changed_);
            looks_again_ = false;
        }
        if (stopped.stop_requested()) {
            return;
        }
        if (publication) {
            take_over(*publication, changed);
        }
        const auto now = Clock::now();
        next_tick = work(now);
        ++rounds_;
    }
}

// The cost follows the change: only service ports that may have changed are processed.
void Caretaker::take_over(const Publication& publication, const std::set<model::ServiceKey>& changed) {
    const bool is_node = options_.mode == model::GatewayMode::Node;
    std::vector<std::pair<model::ServiceKey, std::shared_ptr<const model::Service>>> to_probe;
    for (const auto& key : changed) {
        const Programmed* programmed = publication.compiled->services.get(key);
        const auto service = programmed == nullptr ? nullptr : programmed->desired;
        if (is_node) {
            health_checks_.set(key, service == nullptr ? std::nullopt : service->health_check);
            node_ports_.set(key, service.get());
        }
        if (!options_.has_flow_records) {
            access_logs_.set(key, service.get());
        }
        to_probe.emplace_back(key, service);
    }
    if (is_node) {
        health_checks_.set_addresses(publication.compiled->node_port_addresses);
    }
    compiled_ = publication.compiled;
    announcer_.set(publication.compiled);
    if (options_.vips.addresses || options_.vips.routes) {
        withhold_vips(publication.vips_withheld);
    }
    if (!to_probe.empty()) {
        prober_->set(std::move(to_probe));
    }
}

void Caretaker::withhold_vips(const std::string& why) {
    if (why == vips_withheld_) {  // written only by this thread
        return;
    }
    {
        const std::lock_guard lock(mutex_);
        vips_withheld_ = why;
    }
    if (why.empty()) {
        log::get("control").info("VIPs are no longer withheld from the link");
    } else {
        log::get("control").warn("VIPs are withheld from the link: {}", why);
    }
}

std::optional<Caretaker::Clock::time_point> Caretaker::announce_vips(std::span<const PortState> ports,
                                                                     Clock::time_point now) {
    std::string withheld = vips_withheld_;  // written only by this thread
    if (withheld.empty() && options_.loops && !options_.loops()->forwards()) {
        withheld = "a thread that forwards has stopped";
    }
    VipAnnouncer::Facts facts{mirror(), ports, drained_, std::move(withheld)};
    {
        const std::lock_guard lock(mutex_);
        facts.shares = shares_;
        facts.returning = returning_;
        facts.held = held_;
        facts.has_configuration = options_.allow_empty || has_state_;
    }
    return announcer_.work(facts, now);
}

Caretaker::Clock::time_point Caretaker::work(Clock::time_point now) {
    const std::vector<PortState> ports = options_.ports ? options_.ports() : std::vector<PortState>();
    if (drained_) {
        report_health(now);  // health checks fail before a drain changes the VIPs (PRESENCE-003)
    }
    const auto announce_at = announce_vips(ports, now);
    look_at_ports(ports);
    report_health(now);
    look_after_healthz(now);
    health_checks_.work(now);
    if (options_.exhausted) {
        for (const auto& key : options_.exhausted()) {
            exhaustion_.met(key, now);
        }
    }
    exhaustion_.work(now);
    if (options_.mode == model::GatewayMode::Node) {
        if (node_ports_.take_changed()) {
            look_at_ = std::min(look_at_, std::max(now, looked_at_ + kTick));  // many changes cause one check
        }
        if (look_at_ <= now) {
            looked_at_ = now;
            look_at_ = now + kLookEvery;
            node_ports_.look(local_listeners());
        }
    }
    report_notices();
    return std::min(announce_at.value_or(now + kTick), now + kTick);
}

// If another program (for example kube-proxy) uses the port, the gateway forwards nevertheless.
void Caretaker::look_after_healthz(Clock::time_point now) {
    if (options_.healthz.empty() || healthz_ != nullptr || now < healthz_at_) {
        return;
    }
    const bool is_first = healthz_at_ == Clock::time_point{};
    healthz_at_ = now + HealthChecks::kRetry;
    const auto times = [] { return ProxyTimes{Clock::now(), std::chrono::system_clock::now()}; };
    auto server = http::Server::start(
        options_.healthz,
        {{"/healthz", [this, times] { return healthz(facts(), times(), options_.sync_limit); }},
         {"/livez", [this, times] { return livez(facts(), times(), options_.sync_limit); }}});
    if (server) {
        healthz_ = std::move(*server);
        log::get("control").info("health endpoint: http://{}/healthz", options_.healthz);
    } else if (is_first) {
        log::get("control").warn("--healthz: {}; retried every {} s", server.error().what,
                                 HealthChecks::kRetry.count());
    }
}

void Caretaker::look_at_ports(std::span<const PortState> ports) {
    if (!options_.routes) {
        return;
    }
    const auto routes = options_.routes();
    std::vector<std::string> faults;
    if (std::ranges::all_of(ports, [](const PortState& port) { return port.is_up && !port.is_removed; })) {
        routes_before_ = routes;
    } else if (compiled_ != nullptr) {
        faults = port_faults({.ports = ports,
                              .twins = options_.twins,
                              .compiled = *compiled_,
                              .routes = *routes,
                              .routes_before = routes_before_.get()});
    }
    const std::lock_guard lock(mutex_);
    port_faults_ = std::move(faults);
}

void Caretaker::report_health(Clock::time_point now) {
    const auto reasons = gateway::why_not_well(facts(), now, options_.sync_limit);
    if (reported_health_ == reasons.empty()) {
        return;
    }
    reported_health_ = reasons.empty();
    if (reasons.empty()) {
        log::get("control").info("the gateway is healthy, health checks answer 200");
    } else {
        log::get("control").warn("the gateway is not healthy, health checks answer 503: {}", joined(reasons));
    }
    if (options_.on_health) {
        options_.on_health(reasons.empty());
    }
}

ProxyFacts Caretaker::facts() const {
    ProxyFacts facts{.waiting_since = reconciler_.waiting_since(),
                     .programmed_at = programmed_at_,
                     .has_configuration = options_.allow_empty || has_state_,
                     .node_eligible = node_eligible_,
                     .drained = drained_};
    if (options_.loops) {
        facts.stalls = options_.loops()->stalls();
    }
    const std::lock_guard lock(mutex_);
    facts.port_faults = port_faults_;
    return facts;
}

void Caretaker::report_notices() {
    const std::array lists{exhaustion_.notices(), health_checks_.notices(), node_ports_.notices(),
                           access_logs_.notices(), announcer_.notices()};
    auto next = merged(lists);
    std::vector<model::ObservedNotice> before;
    {
        const std::lock_guard lock(mutex_);
        if (next == observed_) {
            return;
        }
        before = std::exchange(observed_, next);
    }
    std::vector<model::ObservedNotice> appeared;
    std::ranges::set_difference(next, before, std::back_inserter(appeared));
    for (const auto& observed : appeared) {
        log::get("control").warn("service {}: {}: {}", observed.key.to_string(), observed.notice.reason,
                                 observed.notice.message);
    }
    if (options_.on_observed) {
        options_.on_observed();
    }
}

std::vector<model::ObservedNotice> Caretaker::observed() const {
    const std::lock_guard lock(mutex_);
    return observed_;
}

}  // namespace penstock::gateway
