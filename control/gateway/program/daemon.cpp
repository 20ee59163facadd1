// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/program/daemon.hpp"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "control/gateway/options/snat_shares.hpp"
#include "control/gateway/program/drain_readings.hpp"
#include "control/gateway/program/driver_notices.hpp"
#include "control/gateway/program/exhausted_services.hpp"
#include "control/gateway/program/port_setup.hpp"
#include "control/gateway/program/watched_loops.hpp"
#include "control/gateway/rules/blocklist.hpp"
#include "control/gateway/views/metrics_reading.hpp"
#include "control/log/log.hpp"
#include "drivers/eal/host_facts.hpp"
#include "drivers/steering/rss.hpp"

namespace penstock::gateway {
namespace {

std::vector<TwinAddresses> twin_addresses(const std::vector<PortOption>& ports) {
    std::vector<TwinAddresses> out;
    for (const PortOption& port : ports) {
        TwinAddresses& twin = out.emplace_back();
        twin.name = port.twin;
        for (const auto& address : port.addresses) {
            twin.configured.push_back(address.address);
        }
    }
    return out;
}

// The least memory that EAL starts with (--memory-mb).
constexpr unsigned kEalMbMin = 64;

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
      stop_drain_(options_.drain_on_stop),
      drain_file_(options_.state_file) {}

// Calls end before the objects that they use; workers stop before the ports that they poll.
Daemon::~Daemon() {
    if (loops_) {
        loops_->stop();
    }
    if (reconciler_) {
        reconciler_->set_identity_listener(nullptr);
    }
    linux_follower_.reset();
    if (caretaker_) {
        caretaker_->stop(handover_.must_hand_over() ? VipsAtStop::Kept : VipsAtStop::Withdrawn);
    }
    exporter_.reset();
    server_.reset();
    blocklist_.reset();
    if (reconciler_) {
        reconciler_->stop();
    }
    if (flows_) {
        flows_->stop();  // while the ports with the rules are up
    }
    if (loops_ && has_stopped_worker()) {
        // A stopped worker cannot be joined, and memory that it may still access cannot be freed.
        log::get("control").error("exiting without waiting for stopped workers");
        std::_Exit(EXIT_FAILURE);
    }
    if (workers_) {
        workers_->stop();
    }
    for (auto& port : ports_) {
        port->stop();
    }
    if (handover_.must_hand_over()) {
        hand_over();
    }
}

bool Daemon::has_stopped_worker() const {
    const auto health = loops_->health();
    return std::any_of(health->loops.begin(),
                       health->loops.begin() + static_cast<std::ptrdiff_t>(cores_.worker_cpus.size()),
                       [](const LoopHealth::Loop& loop) { return loop.is_stalled; });
}

Status Daemon::catch_signals() {
    PENSTOCK_TRY(auto signals, process::Signals::block());
    signals_.emplace(std::move(signals));
    return {};
}

Status Daemon::plan_workers() {
    PENSTOCK_TRY(cores_, host::plan_cores(options_.cores, drivers::allowed_cpus()));
    PENSTOCK_TRY(host_ephemeral_, drivers::host_ephemeral_range());
    PENSTOCK_TRY(auto shares, check_snat_shares(options_.snat_ports, host_ephemeral_,
                                                static_cast<unsigned>(cores_.worker_cpus.size())));
    for (const std::string& remark : {cores_.remark, shares}) {
        if (!remark.empty()) {
            log::get("control").warn("{}", remark);
        }
    }
    return {};
}

Status Daemon::start_eal() {
    // --memory-mb includes the tables, wherever they are.
    const auto tables_mb = static_cast<unsigned>(tables_->table_bytes() >> 20);
    drivers::EalOptions eal{.worker_cpus = cores_.worker_cpus,
                            .main_cpu = cores_.main_cpu,
                            .memory_mb = std::max(options_.memory_mb, tables_mb + kEalMbMin) - tables_mb,
                            .no_huge = options_.no_huge,
                            .pci_allow = pci_devices(options_.ports),
                            .sink = log_driver_notice};
    PENSTOCK_TRY(eal_, drivers::Eal::start(std::move(eal)));
    log::get("control").info("memory: {}", eal_->memory_description());
    return {};
}

Status Daemon::open_ports() {
    // With the key of the former process, replies of its connections arrive at the same workers.
    rss_key_ = tables_->former_rss_key();
    if (rss_key_.empty()) {
        rss_key_ = drivers::random_rss_key();
    }
    return open_nic_ports(options_, static_cast<unsigned>(cores_.worker_cpus.size()), rss_key_, pools_,
                          ports_);
}

Status Daemon::open_twins() {
    std::vector<drivers::NetlinkMirror::Twin> names;
    for (const auto& port : ports_) {
        const auto& wanted = port->options();
        PENSTOCK_TRY(auto twin, drivers::TapTwin::open({.name = wanted.twin_name,
                                                        .mac = port->facts().mac,
                                                        .mtu = port->facts().mtu,
                                                        .addresses = wanted.addresses},
                                                       handover_.take_twin(wanted.twin_name).release()));
        names.push_back({port->facts().id, twin->name()});
        twins_.push_back(std::move(twin));
    }
    PENSTOCK_TRY(mirror_, drivers::NetlinkMirror::open(names, log_driver_notice));
    return {};
}

Status Daemon::load_last_good() {
    reconciler_ = std::make_unique<Reconciler>(
        ReconcilerOptions{.identity = options_.identity,
                          .snapshots = {.twins = twin_addresses(options_.ports),
                                        .snat_addresses = options_.snat_addresses,
                                        .snat_ports = options_.snat_ports,
                                        .host_ephemeral = host_ephemeral_,
                                        .packets = options_.packets},
                          .state_file = options_.state_file});
    std::optional<LastGood> last_good;
    if (!options_.state_file.empty()) {
        last_good = gateway::load_last_good(options_.state_file);
    }
    if (!options_.blocklist.empty()) {
        PENSTOCK_TRY_IN("--blocklist", auto list, read_blocklist(options_.blocklist, own_addresses()));
        log::get("control").info("{} prefixes are blocked by {}", list.prefixes().size(), options_.blocklist);
        reconciler_->block(std::move(list));
    }
    initial_ = reconciler_->begin(std::move(last_good),
                                  std::make_shared<const drivers::MirroredState>(mirror_->state()));
    return {};
}

Status Daemon::start_ports() {
    PENSTOCK_TRY(flows_, start_nic_ports(options_, static_cast<unsigned>(cores_.worker_cpus.size()), ports_));
    return {};
}

Status Daemon::start_workers() {
    worker::WorkerSetOptions options = worker_options(options_, *eal_, ports_);
    flows_->before_publish(*initial_);
    while (flows_->work()) {  // rules of the initial configuration are in the NICs before the first packet
    }
    continue_tables(options);
    PENSTOCK_TRY(workers_, worker::WorkerSet::start(std::move(options), std::move(initial_)));
    std::vector<int> twins;
    for (const auto& twin : twins_) {
        twins.push_back(twin->fd());
    }
    handover_.keep_twins(twins);
    handover_.note_forwarding();
    tables_->forget_former();
    return {};
}

// Logs the workers that have stopped. The running workers use the snapshot now.
void Daemon::publish(std::unique_ptr<config::Snapshot> next) {
    for (const WorkerId late : workers_->publish(std::move(next))) {
        log::get("control").warn("worker {} does not apply the configuration: it has stopped in stage: {}",
                                 late.value, workers_->inspect().worker(late).phase);
    }
}

Status Daemon::start_reconciler() {
    reconciler_->set_compiled_listener([this](const Publication& publication) {
        tables_->write_names(*publication.compiled, publication.changed);
    });
    flows_->set_marks_listener([this] { reconciler_->publish_again(); });
    flows_->start();
    reconciler_->start(
        [this](std::unique_ptr<config::Snapshot> next) {
            flows_->before_publish(*next);
            publish(std::move(next));
        },
        {.orders_done = [this] { return workers_->flow_orders_done(); },
         .flows_of = [this](BackendId id) { return workers_->inspect().backend(id).connections; }});
    PENSTOCK_TRY(linux_follower_, LinuxFollower::start(*mirror_, *workers_, *reconciler_));
    return {};
}

Status Daemon::start_twin_io() {
    std::vector<drivers::TwinIo::Twin> twins;
    for (size_t i = 0; i < ports_.size(); ++i) {
        twins.push_back({ports_[i]->facts().id, twins_[i].get(), ports_[i]->facts().mtu});
    }
    twin_ports_ = std::make_unique<TwinPorts>(*workers_);
    PENSTOCK_TRY(twin_io_, drivers::TwinIo::open(std::move(twins), *twin_ports_,
                                                 pools_.on(ports_.front()->facts().socket)));
    if (handover_.is_supervised()) {
        PENSTOCK_TRY_STATUS(twin_io_->also_wake_on(handover_.fd()));
    }
    return twin_io_->also_wake_on(signals_->fd());
}

// Addresses that Linux has on the twins now, and SNAT addresses.
std::vector<IpAddr> Daemon::own_addresses() const {
    std::vector<IpAddr> own = options_.snat_addresses;
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
        PENSTOCK_TRY(vip_announcements_, drivers::VipAnnouncements::open(std::move(twins)));
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
                                    .on_observed = [this] { server_->announce_observed(); },
                                    .vips = announcer_options()},
                                   *reconciler_));
    loops_ = std::make_unique<LoopWatch>(
        watched_loops(*workers_, *reconciler_, *linux_follower_, *caretaker_, control_rounds_));
    stream_ = std::make_unique<StreamTarget>(*reconciler_, *caretaker_);
    running_ = std::make_unique<Running>(
        Running{*reconciler_, *stream_, *caretaker_, *workers_, ports_, *twin_io_, pools_, *flows_, *loops_,
                drain_file_, stop_drain_, *tables_, eal_->memory_description(), started_at_, started_on_});
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
    PENSTOCK_TRY(server_, rpc::Server::start(server, {*stream_, *status_, *explain_}));
    running_->tls = server_->tls();
    running_->tcp = server_->tcp();
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
    return {};
}

void Daemon::run() {
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
                     [this] { return handover_.must_hand_over(); }};
    const auto signal = loop.run();
    log::get("control").info("stopping {}", signal ? "on " + signal->name() : "for the successor");
}

void Daemon::begin_stop_drain() {
    log::get("control").info(
        "the gateway is drained before it stops, for {} s at most; a second signal stops it",
        options_.drain_on_stop.count());
    caretaker_->set_drained(true);
}

// Forwarding does not depend on the metrics port, which another program may use: listening is retried. The
// first attempt is in serve(), the others are made by the control loop.
void Daemon::open_metrics(std::chrono::steady_clock::time_point now) {
    constexpr std::chrono::seconds kRetry{10};
    if (options_.metrics_listen.empty() || exporter_ != nullptr || now < metrics_at_) {
        return;
    }
    const bool is_first = std::exchange(metrics_at_, now + kRetry) == std::chrono::steady_clock::time_point{};
    auto exporter = metrics::Exporter::start(options_.metrics_listen,
                                             [running = running_.get()] { return read_metrics(*running); });
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
    if (server_->tls() != nullptr) {
        files += std::string(files.empty() ? "" : " and ") + "the TLS files";
    }
    log::get("control").info(
        "SIGHUP: {}; changes of options and ports require a restart",
        files.empty() ? "there is no file to read again" : files + " will be read again");
    if (blocklist_) {
        blocklist_->reload();
    }
    if (server_->tls() != nullptr) {
        server_->tls()->reload();
    }
}

}  // namespace penstock::gateway
