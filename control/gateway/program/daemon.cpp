// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/program/daemon.hpp"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "control/gateway/program/drain_readings.hpp"
#include "control/gateway/program/exhausted_services.hpp"
#include "control/gateway/program/flow_exporter.hpp"
#include "control/gateway/program/twin_thread.hpp"
#include "control/gateway/program/watched_loops.hpp"
#include "control/gateway/shares/share_snat.hpp"
#include "control/gateway/upgrade/step_names.hpp"
#include "control/gateway/views/metrics_reading.hpp"
#include "control/log/log.hpp"

namespace penstock::gateway {
namespace {

TwinSubnets twin_subnets(const std::vector<PortOption>& ports) {
    TwinSubnets twins;
    for (const PortOption& port : ports) {
        twins.push_back(port.addresses);
    }
    return twins;
}

}  // namespace

Daemon::Daemon(Options options, Handover handover)
    : options_(std::move(options)),
      handover_(std::move(handover)),
      order_(start_order()),
      upgrades_(handover_.sender()),
      service_manager_(process::ServiceManager::from_environment()),
      reports_([this](const std::string& lines) { return service_manager_.send(lines); },
               service_manager_.watchdog()),
      stop_drain_(options_.drain_on_stop),
      drain_file_(options_.state_file) {}

// Calls end before the objects that they use; workers stop before the ports that they poll. Calls may take
// long, and the twins' frames move until the workers stop.
Daemon::~Daemon() {
    if (twin_io_ && !twin_thread_.joinable()) {
        twin_thread_ = move_frames_of(*twin_io_);
    }
    if (loops_) {
        loops_->stop();
    }
    if (reconciler_) {
        reconciler_->set_identity_listener(nullptr);
    }
    linux_follower_.reset();
    if (link_duty_) {
        link_duty_->stop();
    }
    if (caretaker_) {
        caretaker_->stop(handover_.must_hand_over() ? VipsAtStop::Kept : VipsAtStop::Withdrawn);
    }
    exporter_.reset();
    upgrades_.stop();
    if (share_copies_) {
        share_copies_->stop();  // it reads the TLS files of the server
    }
    server_.reset();  // its calls read the plan
    blocklist_.reset();
    plan_watch_.reset();
    if (reconciler_) {
        reconciler_->stop();
    }
    if (flows_) {
        flows_->stop();  // while the ports with the rules are up
    }
    handover_.note_step(step::kCallsEnded);
    if (loops_ && has_stopped_worker()) {
        // A stopped worker cannot be joined, and memory that it may still access cannot be freed.
        log::get("control").error("exiting without waiting for stopped workers");
        std::_Exit(EXIT_FAILURE);
    }
    twin_thread_ = {};
    if (workers_) {
        workers_->stop();
    }
    handover_.note_step(step::kWorkersStopped);
    if (handover_.must_hand_over()) {
        hand_over();
    }
    for (auto& port : ports_) {
        port->stop();
    }
    if (order_ == StartOrder::InTurn && !has_taken_over_) {
        // The former process has the devices. To close them would take their frames from it.
        for (auto& port : ports_) {
            port->abandon();
        }
        if (eal_) {
            eal_->abandon();
        }
    }
    bfd_.reset();
    // After all that a successor waits for: it writes the last records of the workers, as fast as the disk.
    flow_records_.reset();
}

bool Daemon::has_stopped_worker() const {
    const auto health = loops_->health();
    return std::any_of(health->loops.begin(),
                       health->loops.begin() + static_cast<std::ptrdiff_t>(cores_.worker_cpus.size()),
                       [](const LoopHealth::Loop& loop) { return loop.is_stalled; });
}

// Logs the workers that have stopped. The running workers use the snapshot now.
void Daemon::publish(std::unique_ptr<config::Snapshot> next) {
    for (const WorkerId late : workers_->publish(std::move(next))) {
        log::get("control").warn("worker {} does not apply the configuration: it has stopped in stage: {}",
                                 late.value, workers_->inspect().worker(late).phase);
    }
}

// Addresses that Linux has on the twins now, and SNAT addresses, also those of shares.
std::vector<IpAddr> Daemon::own_addresses() const {
    std::vector<IpAddr> own = options_.snat_addresses;
    if (plan_watch_ != nullptr) {
        const auto shares = plan_watch_->shares();
        for (const nat::SnatAddress& address : snat_of_shares(shares.get())) {
            own.push_back(address.address);
        }
    }
    for (const PortOption& port : options_.ports) {
        for (const auto& address : port.addresses) {
            own.push_back(address.address);
        }
    }
    const auto mirror = reconciler_->read([](const ReconcilerState& state) { return state.mirror; });
    for (const route::LocalAddress& local : mirror->addresses) {
        own.push_back(local.address);
    }
    return own;
}

Status Daemon::open_vips() {
    drivers::TwinsByIndex twins;
    for (size_t i = 0; i < twins_.size(); ++i) {
        twins[twins_[i]->ifindex()] = ports_[i]->facts().id;
    }
    const VipPresenceMode mode = options_.vip_presence;
    if (mode == VipPresenceMode::Addresses) {
        PENSTOCK_TRY(vip_addresses_, drivers::VipAddresses::open(twins));
    }
    if (mode == VipPresenceMode::Routes || mode == VipPresenceMode::Arp) {
        PENSTOCK_TRY(vip_routes_, drivers::VipRoutes::open(twins));
    }
    if (mode == VipPresenceMode::Addresses || mode == VipPresenceMode::Arp) {
        PENSTOCK_TRY(vip_announcements_, drivers::VipAnnouncements::open(twins));
    }
    if (mode == VipPresenceMode::Arp && plan_watch_ != nullptr) {
        PENSTOCK_TRY(link_probes_, drivers::LinkProbes::open(std::move(twins)));
    }
    return {};
}

VipAnnouncerOptions Daemon::announcer_options() {
    VipAnnouncerOptions options{.stands_by = options_.vip_standby,
                                .vip_packets = vip_packets(*workers_),
                                .open_flows = [this] { return open_flows(*workers_, *reconciler_); }};
    const auto announce = [this](const auto& vip, const MacAddr& mac) { vip_announcements_->send(vip, mac); };
    if (vip_announcements_) {
        options.responder =
            VipResponderOptions{.answer_for = [this](auto vips) { reconciler_->answer_for(std::move(vips)); },
                                .answered = [this] { return reconciler_->answered(); },
                                .announce = announce};
    }
    if (link_probes_) {
        options.on_link_shares = [this](const LinkShares& facts) { link_duty_->set(facts); };
    }
    if (vip_addresses_) {
        options.addresses =
            VipPresenceOptions{.twins = twin_subnets(options_.ports),
                               .withdraw_empty = options_.withdraw_empty,
                               .add = [this](const auto& vip) { return vip_addresses_->add(vip); },
                               .remove = [this](const auto& vip) { return vip_addresses_->remove(vip); },
                               .announce = announce};
    }
    if (vip_routes_) {
        options.routes =
            VipRouteOptions{.twins = twin_subnets(options_.ports),
                            .twin_names = {},
                            .withdraw_empty = options_.withdraw_empty,
                            .read = [this] { return vip_routes_->read(); },
                            .apply = [this](auto changes) { return vip_routes_->apply(changes); },
                            .remove_neighbours = [this](auto vips) { vip_routes_->remove_neighbours(vips); }};
        for (const auto& twin : twins_) {
            options.routes->twin_names.push_back(twin->name());
        }
    }
    return options;
}

std::vector<PortState> Daemon::port_states() const {
    std::vector<PortState> states;
    for (const auto& port : ports_) {
        states.push_back({port->facts().id, port->options().twin_name, port->link_up(), port->is_removed()});
    }
    return states;
}

Status Daemon::serve() {
    const bool drained = drain_file_.is_drained();
    if (drained) {
        log::get("control").warn(
            "the gateway is still drained from an earlier run, because {} exists; run `penstockctl undrain` "
            "to end the drain",
            drain_file_.path());
    }
    PENSTOCK_TRY_STATUS(open_vips());
    PENSTOCK_TRY(caretaker_,
                 Caretaker::create({.mode = options_.identity.mode,
                                    .healthz = options_.healthz,
                                    .sync_limit = options_.sync_limit,
                                    .allow_empty = options_.allow_empty,
                                    .drained = drained,
                                    .loops = [this] { return loops_->health(); },
                                    .ports = [this] { return port_states(); },
                                    .twins = twin_subnets(options_.ports),
                                    .routes = [this] { return workers_->current().routes; },
                                    .on_health = [this](bool is_well) { server_->set_serving(is_well); },
                                    .exhausted = exhausted_services(*workers_, *reconciler_),
                                    .has_flow_records = options_.flow_records.is_on(),
                                    .on_observed = [this] { server_->announce_observed(); },
                                    .vips = announcer_options()},
                                   *reconciler_));
    prepare_copies();
    flow_records_ = start_flow_exporter(options_, *workers_, *reconciler_, started_on_);
    loops_ = std::make_unique<LoopWatch>(watched_loops(
        *workers_, *reconciler_, *linux_follower_, *caretaker_, flow_records_.get(), bfd_.get(),
        link_duty_.get(), control_rounds_, [this](const LoopHealth& health) { report(health); }));
    stream_ = std::make_unique<StreamTarget>(*reconciler_, *caretaker_);
    captures_ = std::make_unique<Captures>(*workers_, *reconciler_, ports_);
    running_ = std::make_unique<Running>(Running{*reconciler_, *stream_, *caretaker_, *workers_, ports_,
                                                 *twin_io_, pools_, *flows_, *loops_, drain_file_,
                                                 stop_drain_, *tables_, upgrades_, *captures_,
                                                 eal_->memory_description(), started_at_, started_on_});
    running_->flow_records = flow_records_.get();
    running_->bfd = bfd_.get();
    running_->shares = plan_watch_.get();
    running_->copies = share_copies_.get();
    running_->link_duty = link_duty_.get();
    status_ = std::make_unique<StatusView>(*running_);
    explain_ = std::make_unique<ExplainView>(*running_);
    rpc::ServerOptions server{.tls_cert = options_.tls_cert,
                              .tls_key = options_.tls_key,
                              .tls_client_ca = options_.tls_client_ca,
                              .tls_admin_names = options_.tls_admin_names,
                              .socket_group = options_.socket_group};
    std::string addresses;
    for (const ListenAddress& address : options_.listen) {
        (address.is_unix() ? server.unix_paths : server.tcp_addresses)
            .push_back(address.is_unix() ? address.path : address.text);
        addresses += (addresses.empty() ? "" : ", ") + address.text;
    }
    PENSTOCK_TRY(server_, rpc::Server::start(server, {*stream_, *status_, *explain_,
                                                      share_copies_ ? &share_copies_->sender() : nullptr}));
    running_->tls = server_->tls();
    running_->tcp = server_->tcp();
    exchange_copies();
    follow_shares();
    open_metrics(std::chrono::steady_clock::now());
    reconciler_->set_identity_listener([this] { server_->announce_identity(); });
    caretaker_->start();
    if (!options_.blocklist.empty()) {
        const config::Snapshot now = workers_->current();
        PENSTOCK_TRY_IN(
            "--blocklist", blocklist_,
            BlocklistWatch::start(
                {.file = options_.blocklist,
                 .known = now.blocked_sources ? *now.blocked_sources : route::PrefixSet(),
                 .own_addresses = [this] { return own_addresses(); },
                 .on_change = [this](const route::PrefixSet& list) { reconciler_->block(list); }}));
    }
    log::get("control").info("gateway {} is ready: {} ports, {} workers, gRPC on {}",
                             options_.identity.gateway_name, ports_.size(), cores_.worker_cpus.size(),
                             addresses);
    handover_.note_forwarding();
    serves_.store(true, std::memory_order_release);
    return {};
}

void Daemon::run() {
    twin_thread_ = {};  // the loop moves the frames from now on
    ControlLoop loop{*twin_io_,
                     *workers_,
                     *linux_follower_,
                     *flows_,
                     ports_,
                     twins_,
                     *signals_,
                     control_rounds_,
                     [this] { reload(); },
                     [this](auto now) { open_metrics(now); },
                     [this] { caretaker_->look_again(); },
                     stop_drain_,
                     [this] { begin_stop_drain(); },
                     [this] { return caretaker_->vips()->drain; },
                     [this] { return handover_.must_hand_over(upgrades_); }};
    report_end(loop.run());
}

// Forwarding does not depend on the metrics port, which another program may use: listening is retried. The
// first attempt is in serve(), the others are made by the control loop.
void Daemon::open_metrics(std::chrono::steady_clock::time_point now) {
    constexpr std::chrono::seconds kRetry{10};
    if (options_.metrics_listen.empty() || exporter_ != nullptr || now < metrics_at_) {
        return;
    }
    const bool is_first = std::exchange(metrics_at_, now + kRetry) == std::chrono::steady_clock::time_point{};
    auto exporter = metrics::Exporter::start(
        options_.metrics_listen, [running = running_.get(), backends = options_.metrics_backends] {
            return read_metrics(*running, backends);
        });
    if (exporter) {
        exporter_ = std::move(*exporter);
        if (!is_first) {
            log::get("metrics").info("metrics are served on {}", options_.metrics_listen);
        }
    } else if (is_first) {
        log::get("metrics").warn("{}; metrics are not served, next attempt every {} s", exporter.error().what,
                                 kRetry.count());
    }
}

// Runs on the main thread, which moves the twins' frames. The files are therefore read by other threads, and
// each logs its result.
void Daemon::reload() {
    std::string files = blocklist_ ? "the blocklist" : "";
    const auto add = [&files](bool is_read, const char* name) {
        files += is_read ? (files.empty() ? "" : ", ") + std::string(name) : std::string();
    };
    add(plan_watch_ != nullptr, "the plan of shares");
    add(server_->tls() != nullptr, "the TLS files");
    log::get("control").info("SIGHUP: {}{}; changes of options and ports require a restart",
                             files.empty() ? "there is no file to read again" : files + " will be read again",
                             flow_records_ ? ", the files of flow records will be opened again" : "");
    if (flow_records_) {
        flow_records_->reopen();
    }
    if (blocklist_) {
        blocklist_->reload();
    }
    if (plan_watch_) {
        plan_watch_->reload();
    }
    if (server_->tls() != nullptr) {
        server_->tls()->reload();
    }
}

}  // namespace penstock::gateway
