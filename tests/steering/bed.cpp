// SPDX-License-Identifier: Apache-2.0
#include "tests/steering/bed.hpp"

#include "dataplane/base/verdict.hpp"
#include "drivers/flow/flow_install.hpp"
#include "tests/support/eal_fixture.hpp"

namespace penstock::test {

Result<std::unique_ptr<SteeringBed>> SteeringBed::start(const BedOptions& options) {
    if (!start_eal()) {
        return fail(Errc::Unavailable, "EAL did not start");
    }
    std::unique_ptr<SteeringBed> bed(new SteeringBed);
    bed->gateway_.publish(options.services);
    bed->rss_key_ = drivers::random_rss_key();
    for (const NicPortId id : {kUp, kCluster}) {
        if (auto started = bed->start_port(id, options); !started) {
            return std::unexpected(started.error());
        }
    }
    if (auto started = bed->start_workers(options); !started) {
        return std::unexpected(started.error());
    }
    return bed;
}

Status SteeringBed::start_port(NicPortId id, const BedOptions& options) {
    static unsigned number = 0;  // a device name is used once in the life of the process
    drivers::NicPortOptions wanted;
    wanted.device = "net_soft" + std::to_string(number++) +
                    ",mac=" + (id == kUp ? kUpMac : kClusterMac).to_string() +
                    (options.nic.empty() ? "" : "," + options.nic);
    wanted.rx_queues = wanted.tx_queues = options.workers;
    wanted.rss_key = rss_key_;
    auto port = drivers::NicPort::probe(id, wanted, [this](drivers::NoticeLevel, std::string_view line) {
        notices_ += std::string(line) + "\n";
    });
    if (!port) {
        return std::unexpected(port.error());
    }
    nics_.push_back(SoftNic::find((*port)->facts().name));
    wires_.emplace_back(*nics_.back());
    ports_.push_back(std::move(*port));
    return {};
}

// As in control/gateway/program/daemon.cpp.
Status SteeringBed::start_workers(const BedOptions& options) {
    drivers::MempoolDemand demand{.workers = options.workers};
    for (const auto& port : ports_) {
        port->add_demand(demand);
    }
    if (auto added = pools_.add(-1, demand); !added) {
        return added;
    }
    worker::WorkerSetOptions wanted;
    wanted.connections_per_worker = options.connections;
    for (uint32_t w = 0; w < options.workers; ++w) {
        wanted.lcores.push_back(w + 1);
        wanted.cpus.push_back(worker_cpu());
    }
    for (const auto& port : ports_) {
        if (auto configured = port->configure(pools_.on(-1), options.workers); !configured) {
            return configured;
        }
        if (auto started = port->start(); !started) {
            return started;
        }
        const drivers::NicPortFacts& facts = port->facts();
        wanted.ports.push_back(
            {.id = facts.id,
             .dpdk_port = facts.dpdk_port,
             .rx_queues = facts.rx_queues,
             .tx_queues = facts.tx_queues,
             .flow_stays_on_queue = facts.steering.flow_stays_on_queue,
             .rx_checksum_checked = facts.rx_checksum_checked,
             .mac = facts.mac,
             .reply_hash = facts.steering.reply_hash,
             .snat_blocks_on_queue = facts.steering.steering == drivers::Steering::FlowRules});
    }
    auto initial = std::make_unique<config::Snapshot>(gateway_.snapshot());
    if (options.follows_rules) {
        flows_ = std::make_unique<gateway::FlowFollower>(gateway::FlowLimits{.workers = options.workers},
                                                         flow_ports());
        flows_->before_publish(*initial);
        while (flows_->work()) {
        }
    }
    auto workers = worker::WorkerSet::start(std::move(wanted), std::move(initial));
    if (!workers) {
        return std::unexpected(workers.error());
    }
    workers_ = std::move(*workers);
    return {};
}

std::vector<gateway::FlowFollower::Port> SteeringBed::flow_ports() const {
    std::vector<gateway::FlowFollower::Port> ports;
    for (const auto& port : ports_) {
        const drivers::NicPortFacts& facts = port->facts();
        ports.push_back({{.id = facts.id,
                          .reply_hash = facts.steering.reply_hash,
                          .support = facts.flow_support,
                          .is_isolated = facts.is_isolated},
                         std::make_unique<drivers::PortFlows>(drivers::open_flow_driver(facts.dpdk_port),
                                                              facts.flow_facts)});
    }
    return ports;
}

SteeringBed::~SteeringBed() {
    flows_.reset();  // while the ports that hold the rules are up
    workers_.reset();
    ports_.clear();  // before the pool, because their queues hold its buffers
}

uint64_t SteeringBed::count(stats::Counter counter) const {
    const worker::Inspector inspect = workers_->inspect();
    uint64_t sum = 0;
    for (uint8_t w = 0; w < inspect.workers(); ++w) {
        sum += inspect.counter({w}, counter);
    }
    return sum;
}

uint64_t SteeringBed::connections() const {
    const worker::Inspector inspect = workers_->inspect();
    uint64_t sum = 0;
    for (uint8_t w = 0; w < inspect.workers(); ++w) {
        sum += inspect.worker({w}).connections;
    }
    return sum;
}

uint64_t SteeringBed::drops() const {
    const worker::Inspector inspect = workers_->inspect();
    uint64_t sum = 0;
    for (uint8_t w = 0; w < inspect.workers(); ++w) {
        for (size_t reason = 0; reason < kDropReasons; ++reason) {
            sum += inspect.drops({w}, static_cast<DropReason>(reason));
        }
    }
    return sum;
}

std::string SteeringBed::drops_by_name() const {
    const worker::Inspector inspect = workers_->inspect();
    std::string text;
    for (size_t reason = 0; reason < kDropReasons; ++reason) {
        uint64_t sum = 0;
        for (uint8_t w = 0; w < inspect.workers(); ++w) {
            sum += inspect.drops({w}, static_cast<DropReason>(reason));
        }
        if (sum != 0) {
            text += (text.empty() ? "" : ", ") + std::string(kDropReasonTexts[reason].counter) + " " +
                    std::to_string(sum);
        }
    }
    return text;
}

}  // namespace penstock::test
