// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/program/port_setup.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "control/gateway/options/snat_shares.hpp"
#include "control/gateway/program/driver_notices.hpp"
#include "control/log/log.hpp"
#include "drivers/eal/device_string.hpp"
#include "drivers/pmd/profiles.hpp"

namespace penstock::gateway {
namespace {

// The NUMA node of a port's buffers. A port without a node gets them on another port's.
int socket_of(const drivers::NicPort& port, const NicPorts& ports) {
    int some_socket = -1;
    for (const auto& other : ports) {
        some_socket = std::max(some_socket, other->facts().socket);
    }
    return port.facts().socket < 0 ? some_socket : port.facts().socket;
}

bool can_open_twice(const drivers::DeviceString& device) {
    return drivers::pmd_profile(device.driver).opens_twice;
}

// The server's socket of net_memif and the rules of net_tap for its remote interface are made when the device
// is probed, and end with the device of the former process.
bool can_probe_twice(const drivers::DeviceString& device) {
    const std::string* const role = device.argument("role");
    return drivers::pmd_profile(device.driver).probes_twice && (role == nullptr || *role == "client") &&
           device.argument("remote") == nullptr;
}

}  // namespace

std::vector<std::string> pci_devices(const std::vector<PortOption>& ports) {
    std::vector<std::string> devices;
    for (const PortOption& port : ports) {
        const auto device = drivers::DeviceString::parse(port.device);
        if (device && device->is_pci) {
            devices.push_back(device->to_string());  // with its arguments, because EAL probes it
        }
        for (const std::string& member : device ? device->members() : std::vector<std::string>()) {
            if (drivers::is_pci_address(member)) {
                devices.push_back(member);
            }
        }
    }
    return devices;
}

std::vector<std::string> guarded_interfaces(const std::vector<PortOption>& ports) {
    std::vector<std::string> interfaces;
    for (const PortOption& port : ports) {
        const auto device = drivers::DeviceString::parse(port.device);
        if (device && !device->kernel_interface().empty()) {
            interfaces.push_back(device->kernel_interface());
        }
    }
    return interfaces;
}

StartOrder order_of_successor(const std::vector<PortOption>& ports) {
    StartOrder order = StartOrder::Beside;
    for (const PortOption& port : ports) {
        const auto device = drivers::DeviceString::parse(port.device);
        if (!device || !(can_open_twice(*device) || can_probe_twice(*device))) {
            return StartOrder::After;
        }
        if (!can_open_twice(*device)) {
            order = StartOrder::InTurn;
        }
    }
    return order;
}

Status probe_nic_ports(const Options& options, unsigned workers, const std::vector<uint8_t>& rss_key,
                       StartOrder order, drivers::Mempools& pools, NicPorts& ports, const PortDone& done) {
    for (const PortOption& option : options.ports) {
        const NicPortId id{static_cast<uint8_t>(ports.size())};
        PENSTOCK_TRY(auto port,
                     drivers::NicPort::probe(
                         id,
                         {.device = option.device,
                          .twin_name = option.twin,
                          .addresses = option.addresses,
                          .mtu = option.mtu,
                          .rx_queues = workers,
                          .tx_queues = workers,
                          .rss_key = rss_key,
                          .rx_interrupts = options.idle == worker::IdleMode::Adaptive,
                          .flow_rules = options.flow_rules > 0,
                          .isolate = options.vip_isolate,
                          .locks_later = order == StartOrder::Beside || order == StartOrder::InTurn,
                          .keeps_mac = order != StartOrder::Alone},
                         log_driver_notice));
        ports.push_back(std::move(port));
        done();
    }
    std::map<int, drivers::MempoolDemand> demands;
    for (const auto& port : ports) {
        drivers::MempoolDemand& demand = demands[socket_of(*port, ports)];
        port->add_demand(demand);
        demand.workers = workers;  // each one may hold buffers of every port
    }
    for (const auto& [socket, demand] : demands) {
        PENSTOCK_TRY_STATUS(pools.add(socket, demand));
    }
    return {};
}

Status configure_nic_ports(unsigned workers, const drivers::Mempools& pools, const NicPorts& ports,
                           const PortDone& done) {
    for (const auto& port : ports) {
        PENSTOCK_TRY_STATUS(port->configure(pools.on(socket_of(*port, ports)), workers));
        done();
    }
    return {};
}

Result<std::unique_ptr<FlowFollower>> start_nic_ports(const Options& options, unsigned workers,
                                                      const NicPorts& ports, const PortDone& done) {
    const FlowLimits limits{.workers = workers,
                            .budget = options.flow_rules,
                            .isolate = options.vip_isolate,
                            .mark = options.vip_mark};
    std::vector<FlowFollower::Port> followed;
    for (const auto& port : ports) {
        PENSTOCK_TRY_STATUS(port->start());
        const auto& facts = port->facts();
        log::get("drivers").info(
            "port {} is {} ({}): {} receive and {} transmit queues, MTU {}, steering {}: {}", facts.id.value,
            facts.name, facts.driver, facts.rx_queues, facts.tx_queues, facts.mtu,
            drivers::to_string(facts.steering.steering), facts.steering.reason);
        if (!facts.check_failed.empty()) {
            log::get("drivers").error("port {}: predictable RSS is not used, its self-check failed: {}",
                                      facts.id.value, facts.check_failed);
        }
        if (options.vip_isolate && !facts.is_isolated) {
            log::get("drivers").warn("port {} is not isolated: {}", facts.id.value,
                                     facts.flow_support.vip_isolate.reason);
        }
        auto flows = std::make_unique<drivers::PortFlows>(drivers::open_flow_driver(facts.dpdk_port),
                                                          facts.flow_facts);
        if (facts.is_isolated) {
            flows->note_isolated();
        }
        followed.push_back({{.id = facts.id,
                             .reply_hash = facts.steering.reply_hash,
                             .support = facts.flow_support,
                             .is_isolated = facts.is_isolated},
                            std::move(flows)});
        done();
    }
    return std::make_unique<FlowFollower>(limits, std::move(followed));
}

MemoryPlan memory_plan(unsigned workers, const drivers::Mempools& pools, const NicPorts& ports) {
    MemoryPlan plan{.workers = workers, .ports = {}, .pools = pools.shapes()};
    for (const auto& port : ports) {
        const auto& facts = port->facts();
        plan.ports.push_back({.rx_queues = facts.rx_queues,
                              .tx_queues = facts.tx_queues,
                              .reply_hash = facts.steering.reply_hash});
    }
    return plan;
}

std::vector<worker::PortPlan> ports_of(const MemoryPlan& plan) {
    std::vector<worker::PortPlan> ports;
    for (const MemoryPlan::Port& port : plan.ports) {
        ports.push_back({.id = NicPortId{static_cast<uint8_t>(ports.size())},
                         .rx_queues = port.rx_queues,
                         .tx_queues = port.tx_queues,
                         .mac = {},
                         .reply_hash = port.reply_hash});
    }
    return ports;
}

worker::WorkerSetOptions worker_options(const Options& options, const drivers::Eal& eal,
                                        const NicPorts& ports) {
    const auto workers = static_cast<unsigned>(eal.worker_cpus().size());
    worker::WorkerSetOptions out{.lcores = eal.worker_lcores(),
                                 .cpus = eal.worker_cpus(),
                                 .connections_per_worker = options.connections,
                                 .affinity_entries = options.affinity_entries,
                                 .burst = options.burst,
                                 .snat_ports = options.snat_ports,
                                 .ports = {},
                                 .idle = options.idle};
    out.latencies = options.latencies;
    out.has_bfd = !options.bfd.empty();
    if (options.flow_records.is_on()) {
        out.flow_records = {.by_default = options.flow_records.all_services,
                            .one_in = options.flow_records.one_in};
    }
    for (const auto& port : ports) {
        const auto& facts = port->facts();
        if (const auto& hash = facts.steering.reply_hash) {
            std::string remark = remark_on_hashed_shares(*hash, facts.id, options.snat_ports, workers);
            if (remark.empty() && !options.shares.empty()) {
                remark = remark_on_hashed_shares(*hash, facts.id, options.snat_ports, workers,
                                                 nat::PortPart::Heir);
            }
            if (!remark.empty()) {
                log::get("control").warn("{}", remark);
            }
        }
        out.ports.push_back({.id = facts.id,
                             .dpdk_port = facts.dpdk_port,
                             .rx_queues = facts.rx_queues,
                             .tx_queues = facts.tx_queues,
                             .flow_stays_on_queue = facts.steering.flow_stays_on_queue,
                             .rx_checksum_checked = facts.rx_checksum_checked,
                             .mac = facts.mac,
                             .reply_hash = facts.steering.reply_hash,
                             .snat_blocks_on_queue = facts.steering.steering == drivers::Steering::FlowRules,
                             .rx_interrupts = facts.rx_interrupts});
    }
    return out;
}

}  // namespace penstock::gateway
