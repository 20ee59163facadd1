// SPDX-License-Identifier: Apache-2.0
// The steps of the start up to packets that are forwarded and states that are applied.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "control/gateway/options/snat_shares.hpp"
#include "control/gateway/program/daemon.hpp"
#include "control/gateway/program/driver_notices.hpp"
#include "control/gateway/program/port_setup.hpp"
#include "control/gateway/program/twin_thread.hpp"
#include "control/gateway/rules/blocklist.hpp"
#include "control/gateway/upgrade/step_names.hpp"
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

}  // namespace

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
    const std::string heir =
        options_.shares.empty()
            ? ""
            : remark_on_heirs_ports(options_.snat_ports, static_cast<unsigned>(cores_.worker_cpus.size()));
    for (const std::string& remark : {cores_.remark, shares, heir}) {
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
                            .hugepage_size = options_.hugepage_size,
                            .pci_allow = pci_devices(options_.ports),
                            // A former process has them until take_over().
                            .probes_pci_later = handover_.is_successor(),
                            .sink = log_driver_notice};
    PENSTOCK_TRY(eal_, drivers::Eal::start(std::move(eal)));
    log::get("control").info("memory: {}", eal_->memory_description());
    handover_.note_step(step::kEalStarted);
    return {};
}

Status Daemon::probe_ports() {
    // With the key of the former process, replies of its connections arrive at the same workers.
    rss_key_ = tables_->former_rss_key();
    if (rss_key_.empty()) {
        rss_key_ = drivers::random_rss_key();
    }
    PENSTOCK_TRY_STATUS(probe_nic_ports(options_, static_cast<unsigned>(cores_.worker_cpus.size()), rss_key_,
                                        order_, pools_, ports_, [this] { handover_.note_progress(); }));
    inherit_interfaces();
    handover_.note_step(step::kPortsProbed);
    return {};
}

Status Daemon::configure_ports() {
    PENSTOCK_TRY_STATUS(configure_nic_ports(static_cast<unsigned>(cores_.worker_cpus.size()), pools_, ports_,
                                            [this] { handover_.note_progress(); }));
    handover_.note_step(step::kPortsOpened);
    return {};
}

Status Daemon::open_twins() {
    for (const auto& port : ports_) {
        const auto& wanted = port->options();
        PENSTOCK_TRY(auto twin, drivers::TapTwin::open({.name = wanted.twin_name,
                                                        .mac = port->facts().mac,
                                                        .mtu = port->facts().mtu,
                                                        .addresses = wanted.addresses},
                                                       handover_.take_twin(wanted.twin_name).release()));
        twins_.push_back(std::move(twin));
    }
    return {};
}

Status Daemon::open_mirror() {
    std::vector<drivers::NetlinkMirror::Twin> names;
    for (const PortOption& port : options_.ports) {
        names.push_back({NicPortId{static_cast<uint8_t>(names.size())}, port.twin});
    }
    PENSTOCK_TRY(mirror_, drivers::NetlinkMirror::open(names, log_driver_notice));
    handover_.note_step(step::kTwinsRead);
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
    PENSTOCK_TRY_STATUS(read_shares());
    std::optional<LastGood> last_good;
    loaded_ = version_of(options_.state_file);
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
    handover_.note_step(step::kCompiled);
    return {};
}

Status Daemon::start_ports() {
    PENSTOCK_TRY(flows_, start_nic_ports(options_, static_cast<unsigned>(cores_.worker_cpus.size()), ports_,
                                         [this] { handover_.note_progress(); }));
    handover_.note_step(step::kPortsStarted);
    return {};
}

Status Daemon::prepare_workers() {
    if (flows_) {
        install_rules(*initial_);
    }
    return create_workers(worker_options(options_, *eal_, ports_));
}

Status Daemon::create_workers(worker::WorkerSetOptions options) {
    place_tables(options);
    PENSTOCK_TRY_STATUS(place_copies(options));
    PENSTOCK_TRY(workers_, worker::WorkerSet::prepare(std::move(options), std::move(initial_)));
    handover_.note_step(step::kWorkersPrepared);
    return {};
}

// As in the former process. Without a plan, attach_ports() creates the workers.
Status Daemon::plan_memory() {
    const auto plan = plan_from_proto(handover_.memory(), static_cast<uint32_t>(cores_.worker_cpus.size()),
                                      options_.ports.size());
    if (!plan) {
        return {};
    }
    for (const auto& [socket, shape] : plan->pools) {
        PENSTOCK_TRY_STATUS(pools_.add(socket, shape));
    }
    worker::WorkerSetOptions options = worker_options(options_, *eal_, {});
    options.ports = ports_of(*plan);
    return create_workers(std::move(options));
}

// Of workers that were prepared before the ports were started.
Status Daemon::attach_ports() {
    if (!workers_) {
        return prepare_workers();
    }
    auto ports = worker_options(options_, *eal_, ports_).ports;
    auto next = std::make_unique<config::Snapshot>(workers_->current());
    if (!workers_->fits(ports)) {
        log::get("control").info(
            "the ports differ from those of the former process: workers are prepared again");
        initial_ = std::move(next);
        workers_.reset();
        return prepare_workers();
    }
    PENSTOCK_TRY_STATUS(workers_->set_ports(std::move(ports)));
    install_rules(*next);
    workers_->publish(std::move(next));
    return {};
}

// Rules of the initial configuration are in the NICs before the first packet.
void Daemon::install_rules(config::Snapshot& initial) {
    flows_->before_publish(initial);
    while (flows_->work()) {
    }
}

Status Daemon::launch_workers() {
    open_bfd();
    PENSTOCK_TRY_STATUS(workers_->launch(
        former_tables(), [this](const adopt::Report& report) { put_tables_in_force(report); }));
    handover_.note_step(step::kForwards);
    tables_->forget_former();
    return {};
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
    std::vector<int> kept;
    for (size_t i = 0; i < ports_.size(); ++i) {
        twins.push_back({ports_[i]->facts().id, twins_[i].get(), ports_[i]->facts().mtu});
        kept.push_back(twins_[i]->fd());
    }
    handover_.keep_twins(
        kept, to_proto(memory_plan(static_cast<unsigned>(cores_.worker_cpus.size()), pools_, ports_)));
    twin_ports_ = std::make_unique<TwinPorts>(*workers_);
    PENSTOCK_TRY(twin_io_, drivers::TwinIo::open(std::move(twins), *twin_ports_,
                                                 pools_.on(ports_.front()->facts().socket)));
    if (handover_.is_supervised()) {
        PENSTOCK_TRY_STATUS(twin_io_->also_wake_on(handover_.fd()));
    }
    PENSTOCK_TRY_STATUS(twin_io_->also_wake_on(signals_->fd()));
    twin_thread_ = move_frames_of(*twin_io_);  // the steps that follow may take long
    handover_.note_step(step::kTwinsServed);
    return {};
}

}  // namespace penstock::gateway
