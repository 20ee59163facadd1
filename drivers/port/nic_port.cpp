// SPDX-License-Identifier: Apache-2.0
#include "drivers/port/nic_port.hpp"

#include <rte_bus_vdev.h>
#include <rte_dev.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_mempool.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <iterator>
#include <thread>
#include <vector>

#include "drivers/pmd/completion.hpp"
#include "drivers/port/bond.hpp"
#include "drivers/port/memif_socket.hpp"

namespace penstock::drivers {
namespace {

// Requested descriptors, adjusted to the device's limits (rte_eth_dev_adjust_nb_rx_tx_desc). 1,024 hold 0.7
// ms at 1.4 Mpps, which covers a worker's housekeeping, and their mbufs still fit in the second-level cache.
constexpr uint16_t kDescriptors = 1024;

// Hashing of addresses and L4 ports. A device that hashes addresses only would put all flows of a client on
// one queue. IP without ports is included for ICMP and fragments, which reach their owner by handoff from any
// queue.
constexpr uint64_t kRssWanted = RTE_ETH_RSS_IP | RTE_ETH_RSS_TCP | RTE_ETH_RSS_UDP;

// Waits between attempts to get a queue that another process has had: they double, and are 2 s together. An
// upgrade allows 5 s.
constexpr std::chrono::milliseconds kQueuePauseFirst{2};
constexpr std::chrono::milliseconds kQueuePauseLast{1'024};

// The objects of a pool that no one has taken, sorted. No other thread may use the pool.
std::vector<void*> available_in(rte_mempool& pool) {
    std::vector<void*> objects;
    for (void* object = nullptr; rte_mempool_get(&pool, &object) == 0;) {
        objects.push_back(object);
    }
    rte_mempool_put_bulk(&pool, objects.data(), static_cast<unsigned>(objects.size()));
    std::ranges::sort(objects);
    return objects;
}

std::unexpected<Error> refused(const std::string& device, const char* step, int result) {
    return fail(result == -ENOMEM ? Errc::Exhausted : Errc::Unsupported,
                "port " + device + ": " + step + ": " + rte_strerror(-result));
}

}  // namespace

Result<std::unique_ptr<NicPort>> NicPort::probe(NicPortId id, const NicPortOptions& options,
                                                const NoticeSink& sink) {
    PENSTOCK_TRY(auto device, DeviceString::parse(options.device));
    std::unique_ptr<NicPort> port(new NicPort);
    port->options_ = options;
    port->device_ = std::move(device);
    port->facts_.id = id;
    port->facts_.name = port->device_.name;
    port->facts_.interface = port->device_.kernel_interface();
    port->facts_.mtu = options.mtu;
    port->profile_ = &pmd_profile(port->device_.driver);
    PENSTOCK_TRY_STATUS_IN("port " + port->facts_.name, port->prepare_device(sink));
    PENSTOCK_TRY_STATUS_IN("port " + port->facts_.name, port->bring_to_life());
    PENSTOCK_TRY_STATUS_IN("port " + port->facts_.name, port->gather_members());
    PENSTOCK_TRY_STATUS_IN("port " + port->facts_.name, port->ask_capabilities());
    return port;
}

// The part of the setup that precedes DPDK's access to the device.
Status NicPort::prepare_device(const NoticeSink& sink) {
    const std::string& interface = facts_.interface;
    if (!options_.locks_later) {
        PENSTOCK_TRY_STATUS(lock());
    }
    CompletionFacts facts{.queues = std::max(options_.rx_queues, options_.tx_queues), .mtu = options_.mtu};
    if (options_.keeps_mac) {
        facts.mac = KernelInterface::mac(options_.twin_name);
    }
    if (!interface.empty()) {
        PENSTOCK_TRY(interface_, KernelInterface::prepare(interface, options_.mtu, sink));
        facts.interface_channels = KernelInterface::combined_channels(interface);
        if (profile_->kernel_hears) {
            PENSTOCK_TRY(guard_, IngressGuard::install(interface));
        }
    }
    PENSTOCK_TRY(const auto completed, complete_device(device_, facts));
    buffer_bytes_ = completed.buffer_bytes;
    if (const auto listener = memif_listener_of(device_)) {
        remove_stale_file(*listener);
    }
    return {};
}

// A PCI device on EAL's allow list is probed already, except in the successor of another process.
Status NicPort::bring_to_life() {
    uint16_t ignored = 0;
    for (const std::string& member : device_.members()) {
        if (is_pci_address(member) && rte_eth_dev_get_port_by_name(member.c_str(), &ignored) != 0 &&
            rte_eal_hotplug_add("pci", member.c_str(), "") != 0) {
            return fail(Errc::Unavailable,
                        "DPDK found no device in member " + member + ": " + rte_strerror(rte_errno));
        }
    }
    if (rte_eth_dev_get_port_by_name(device_.name.c_str(), &facts_.dpdk_port) == 0) {
        if (!device_.is_pci) {
            return fail(Errc::AlreadyExists, "two ports have the device name " + device_.name);
        }
        probed_ = true;
        return {};
    }
    const std::string arguments = device_.arguments_text();
    if (rte_eal_hotplug_add(device_.is_pci ? "pci" : "vdev", device_.name.c_str(), arguments.c_str()) != 0) {
        return fail(Errc::Unavailable,
                    "DPDK found no device in " + device_.to_string() + ": " + rte_strerror(rte_errno));
    }
    if (rte_eth_dev_get_port_by_name(device_.name.c_str(), &facts_.dpdk_port) != 0) {
        return fail(Errc::Unsupported, "the device is not an Ethernet port");
    }
    probed_ = true;
    return {};
}

Status NicPort::gather_members() {
    const std::vector<std::string> members = device_.members();
    return members.empty() ? Status() : join_members(facts_.dpdk_port, members.size());
}

std::vector<std::string> NicPort::members() const {
    const std::lock_guard held(in_use_);
    return device_.members().empty() || !probed_ ? std::vector<std::string>() : members_of(facts_.dpdk_port);
}

Status NicPort::ask_capabilities() {
    rte_eth_dev_info info{};
    if (const int result = rte_eth_dev_info_get(facts_.dpdk_port, &info); result != 0) {
        return fail(Errc::Internal,
                    std::string("cannot read the device information: ") + rte_strerror(-result));
    }
    facts_.driver = info.driver_name == nullptr ? device_.driver : info.driver_name;
    if (device_.is_pci) {
        profile_ = &pmd_profile(facts_.driver);
    }
    facts_.socket = rte_eth_dev_socket_id(facts_.dpdk_port);
    interrupts_ = wish_interrupts(facts_.driver, options_.rx_interrupts,
                                  {.link = (*info.dev_flags & RTE_ETH_DEV_INTR_LSC) != 0,
                                   .removal = (*info.dev_flags & RTE_ETH_DEV_INTR_RMV) != 0,
                                   .silent_link = profile_->silent_link});
    // A PCI device reports its removal itself. Its Linux interface, if any, may move to another namespace
    // without harm.
    events_ = PortEvents::listen(facts_.dpdk_port, facts_.name, device_.is_pci ? 0 : info.if_index);
    capabilities_ = Capabilities{
        .driver = facts_.driver,
        .rx_queues_max = info.max_rx_queues,
        .tx_queues_max = info.max_tx_queues,
        .rx_offloads = info.rx_offload_capa,
        .tx_offloads = info.tx_offload_capa,
        .rss_types = profile_->spread == RxSpread::Reported ? info.flow_type_rss_offloads : 0,
        .reta_size = info.reta_size,
        .hash_key_bytes = info.hash_key_size,
        .mtu_max = info.max_mtu,
        .socket = facts_.socket,
    };
    if (options_.mtu > info.max_mtu || options_.mtu < info.min_mtu) {
        return fail(Errc::InvalidArgument,
                    "MTU " + std::to_string(options_.mtu) + " is outside the range of " + facts_.driver +
                        ", " + std::to_string(info.min_mtu) + " to " + std::to_string(info.max_mtu));
    }
    facts_.rx_queues = static_cast<uint16_t>(std::clamp<unsigned>(options_.rx_queues, 1, info.max_rx_queues));
    facts_.tx_queues = static_cast<uint16_t>(std::clamp<unsigned>(options_.tx_queues, 1, info.max_tx_queues));
    facts_.rx_descriptors = kDescriptors;
    facts_.tx_descriptors = kDescriptors;
    buffer_bytes_ =
        std::max<uint32_t>(buffer_bytes_, info.min_rx_bufsize == UINT32_MAX ? 0 : info.min_rx_bufsize);
    if (const int result = rte_eth_dev_adjust_nb_rx_tx_desc(facts_.dpdk_port, &facts_.rx_descriptors,
                                                            &facts_.tx_descriptors);
        result != 0 && result != -ENOTSUP) {
        return fail(Errc::Unsupported, std::string("descriptors: ") + rte_strerror(-result));
    }
    rte_ether_addr mac{};
    if (rte_eth_macaddr_get(facts_.dpdk_port, &mac) == 0) {
        std::copy_n(mac.addr_bytes, facts_.mac.bytes.size(), facts_.mac.bytes.begin());
    }
    if (facts_.mac.is_zero()) {
        // net_ring and net_null have no MAC. The twin needs one, and so do the peers on such a wire: locally
        // administered, and the same at each start.
        facts_.mac = MacAddr{{0x02, 'p', 'n', 's', 0, facts_.id.value}};
    }
    return {};
}

void NicPort::add_demand(MempoolDemand& demand) const {
    // Each member of a bond has its own rings.
    const auto rings = static_cast<uint32_t>(std::max<size_t>(1, device_.members().size()));
    demand.rx_descriptors += rings * facts_.rx_queues * facts_.rx_descriptors;
    demand.tx_descriptors += rings * facts_.tx_queues * facts_.tx_descriptors;
    demand.driver_held += std::max(facts_.rx_queues, facts_.tx_queues) * profile_->mbufs_per_queue;
    demand.ports += 1;
    demand.has_pci |= device_.is_pci || std::ranges::any_of(device_.members(), is_pci_address);
    demand.tx_through += facts_.tx_queues < options_.tx_queues ? facts_.tx_queues : 0U;
    demand.frame_bytes_max = std::max(demand.frame_bytes_max, buffer_bytes_);
    if (profile_->mbuf_object_max != 0) {
        demand.object_bytes_max = demand.object_bytes_max == 0
                                      ? profile_->mbuf_object_max
                                      : std::min(demand.object_bytes_max, profile_->mbuf_object_max);
    }
}

void NicPort::note_queues(const char* name, unsigned asked, unsigned granted) {
    note_setting(facts_.settings, {.name = name,
                                   .asked = std::to_string(asked),
                                   .granted = std::to_string(granted),
                                   .reason = granted < asked ? "the device has no more queues" : ""});
}

Status NicPort::configure(rte_mempool* pool, unsigned workers) {
    workers_ = workers;
    pool_ = pool;
    note_queues("rx-queues", options_.rx_queues, facts_.rx_queues);
    note_queues("tx-queues", options_.tx_queues, facts_.tx_queues);
    PENSTOCK_TRY_STATUS(configure_device_with_rss());
    return set_up_queues();
}

// Configures the device, with the RSS that it accepts.
Status NicPort::configure_device_with_rss() {
    rss_ = {};
    if (const uint64_t types = kRssWanted & capabilities_.rss_types;
        facts_.rx_queues > 1 && rss_kinds(types).any()) {
        rss_.types = types;
        rss_.queues = facts_.rx_queues;
        const size_t bytes =
            capabilities_.hash_key_bytes == 0 ? kRssKeyBytesUsual : capabilities_.hash_key_bytes;
        rss_.key.assign(options_.rss_key.begin(),
                        options_.rss_key.begin() + std::min(bytes, options_.rss_key.size()));
    }
    auto done = configure_device(false);
    if (!done && !rss_.key.empty()) {
        rss_.key_refused = "the driver does not accept a key: " + done.error().what;
        rss_.key.clear();
        done = configure_device(false);
    }
    if (!done && rss_.types != 0) {
        note_setting(facts_.settings, {.name = "rss-types",
                                       .asked = to_string(rss_kinds(rss_.types)),
                                       .granted = {},
                                       .reason = done.error().what});
        rss_.types = 0;
        done = configure_device(false);
    }
    return done;
}

// Transmit checksum offloads are not requested. Checksums are updated incrementally with each rewrite
// (packet/rewrite.hpp), so no packet needs a new one. Some drivers use a slower transmit path if the offload
// is enabled. L4 checksums are verified by the receiver.
Status NicPort::configure_device(bool loopback) {
    rte_eth_conf config{};
    config.lpbk_mode = loopback ? 1 : 0;
    config.rxmode.offloads = capabilities_.rx_offloads & RTE_ETH_RX_OFFLOAD_IPV4_CKSUM;
    facts_.rx_checksum_checked = config.rxmode.offloads != 0;
    if (!profile_->mtu_by_interface) {
        config.rxmode.mtu = options_.mtu;
    }
    if (rss_.types != 0) {
        config.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
        config.rx_adv_conf.rss_conf.rss_hf = rss_.types;
        config.rx_adv_conf.rss_conf.rss_key = rss_.key.empty() ? nullptr : rss_.key.data();
        config.rx_adv_conf.rss_conf.rss_key_len = static_cast<uint8_t>(rss_.key.size());
        if (profile_->rss_reported_with_hash) {
            config.rxmode.offloads |= capabilities_.rx_offloads & RTE_ETH_RX_OFFLOAD_RSS_HASH;
        }
    }
    if (const int result = configure_with_interrupts(config); result != 0) {
        return refused(facts_.name, "configure", result);
    }
    facts_.offloads.clear();
    if (facts_.rx_checksum_checked) {
        facts_.offloads.emplace_back("rx-ipv4-cksum");
    }
    rss_granted_ = rss_.types != 0;
    if (rss_granted_) {
        facts_.offloads.emplace_back("rss");
    }
    note_setting(facts_.settings, {.name = "rx-ipv4-cksum",
                                   .asked = "on",
                                   .granted = facts_.rx_checksum_checked ? "on" : "",
                                   .reason = facts_.rx_checksum_checked
                                                 ? ""
                                                 : "not offered by the device; workers verify the checksum"});
    return {};
}

int NicPort::set_up_receive_queues() {
    const std::vector<XdpSocket> before = xdp_sockets();
    int result = 0;
    for (uint16_t queue = 0; queue < facts_.rx_queues && result == 0; ++queue) {
        result = rte_eth_rx_queue_setup(facts_.dpdk_port, queue, facts_.rx_descriptors,
                                        static_cast<unsigned>(facts_.socket), nullptr, pool_);
    }
    xdp_sockets_ = xdp_sockets_since(before);
    if (result == 0 && !xdp_sockets_.empty()) {
        note_xdp_mode();
    }
    return result;
}

// The kernel releases a queue of net_af_xdp some time after the socket of a former process is closed: after
// an RCU grace period, by a thread of its own. An attempt that fails keeps the buffers that it has taken, and
// leaves a device that can neither be tried again nor be closed: its position in the fill ring is stale, so
// the kernel would get entries that were never written, and eth_dev_close() writes to memory that the attempt
// has freed, which later allocations expect to be zero. So it is left alone, under its name, and each attempt
// has a device of its own.
Status NicPort::await_receive_queues() {
    const std::vector<void*> available = available_in(*pool_);
    const std::string name = device_.name;
    unsigned attempts = 0;
    for (auto pause = kQueuePauseFirst;; pause *= 2) {
        const int result = set_up_receive_queues();
        if (result == 0) {
            return {};
        }
        // With a queue of its own, the device would have to be closed.
        if (result != -EINVAL || pause > kQueuePauseLast || !xdp_sockets_.empty()) {
            return refused(facts_.name, "receive queue", result);
        }
        std::vector<void*> kept;
        std::ranges::set_difference(available, available_in(*pool_), std::back_inserter(kept));
        rte_mempool_put_bulk(pool_, kept.data(), static_cast<unsigned>(kept.size()));
        std::this_thread::sleep_for(pause);
        events_.reset();
        device_.name = name + "_" + std::to_string(++attempts);
        PENSTOCK_TRY_STATUS(bring_to_life());
        PENSTOCK_TRY_STATUS(ask_capabilities());
        PENSTOCK_TRY_STATUS(configure_device_with_rss());
    }
}

Status NicPort::set_up_queues() {
    const auto socket = static_cast<unsigned>(facts_.socket);
    if (profile_->releases_queues_late) {
        PENSTOCK_TRY_STATUS(await_receive_queues());
    } else if (const int result = set_up_receive_queues(); result != 0) {
        return refused(facts_.name, "receive queue", result);
    }
    for (uint16_t queue = 0; queue < facts_.tx_queues; ++queue) {
        if (const int result =
                rte_eth_tx_queue_setup(facts_.dpdk_port, queue, facts_.tx_descriptors, socket, nullptr);
            result != 0) {
            return refused(facts_.name, "transmit queue", result);
        }
    }
    return {};
}

Status NicPort::start_device() {
    if (const int result = start_with_interrupts(); result != 0) {
        return refused(facts_.name, "start", result);
    }
    started_ = true;
    if (profile_->counts_no_missed) {
        packet_sockets_.find(facts_.interface);
    }
    // ND and routing protocols on the twin use multicast. A device without this switch receives multicast
    // anyway, or has a Linux interface below it that is configured already.
    rte_eth_allmulticast_enable(facts_.dpdk_port);
    // VLAN interfaces can be added to the twin in Linux at any time, without a notification to the device.
    // Frames to other hosts are dropped as wrong_destination_mac.
    if (profile_->filters_vlans) {
        const int result = rte_eth_promiscuous_enable(facts_.dpdk_port);
        note_setting(facts_.settings, {.name = "promiscuous",
                                       .asked = "on, for the twin's VLANs",
                                       .granted = result == 0 ? "on" : "off",
                                       .reason = result == 0 ? std::string() : rte_strerror(-result)});
    }
    return {};
}

Status NicPort::restart_device(bool loopback) {
    stop();
    auto done = configure_device(loopback);
    if (done) {
        done = set_up_queues();
    }
    return done ? start_device() : done;
}

}  // namespace penstock::drivers
