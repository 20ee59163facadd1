// SPDX-License-Identifier: Apache-2.0
// A NicPort: one DPDK port, from the device string of the command line to frames on its queues. Life: probe
// -> configure -> start -> stop -> destruction. NicPortFacts holds what was requested from the device, what
// it granted and what is known of its driver, for status and for the worker room's PortPlan.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "control/base/file_lock.hpp"
#include "dataplane/base/ids.hpp"
#include "dataplane/base/ip.hpp"
#include "dataplane/base/result.hpp"
#include "drivers/eal/device_string.hpp"
#include "drivers/eal/mempool.hpp"
#include "drivers/flow/flow_compile.hpp"
#include "drivers/host/ingress_guard.hpp"
#include "drivers/host/interface_address.hpp"
#include "drivers/host/kernel_interface.hpp"
#include "drivers/pmd/profiles.hpp"
#include "drivers/port/capabilities.hpp"
#include "drivers/port/interrupts.hpp"
#include "drivers/port/notice.hpp"
#include "drivers/port/packet_sockets.hpp"
#include "drivers/port/port_events.hpp"
#include "drivers/port/port_setting.hpp"
#include "drivers/port/xdp_sockets.hpp"
#include "drivers/steering/rss.hpp"
#include "drivers/steering/self_check.hpp"
#include "drivers/steering/steering_plan.hpp"

struct rte_eth_conf;
struct rte_mempool;

namespace penstock::drivers {

struct NicPortOptions {
    std::string device;                       // "0000:03:00.0" or "net_af_packet0,iface=veth0"
    std::string twin_name;                    // the TAP twin's interface name
    std::vector<InterfaceAddress> addresses;  // for the twin
    uint16_t mtu = 1500;                      // IP bytes
    unsigned rx_queues = 1;                   // requested: one per worker
    unsigned tx_queues = 1;                   // requested: one per worker
    std::vector<uint8_t> rss_key;  // random_rss_key(), the same for all ports; empty: each device's own
    bool rx_interrupts = false;    // requested: workers sleep when idle
    bool flow_rules = true;        // the device may be probed for the rules that it accepts
    // Leave to the kernel all frames that no rule takes, if the kernel shares the device.
    bool isolate = false;
    std::string lock_directory = "/run/penstock";
    bool locks_later = false;  // a former process has the port yet; lock() follows
    // The twin exists, and has the MAC that the port shall have if its driver would choose one at random.
    bool keeps_mac = false;
};

struct NicPortFacts {
    NicPortId id;
    uint16_t dpdk_port = 0;
    std::string name;       // of the device: "0000:03:00.0", "net_af_packet0"
    std::string driver;     // "net_af_packet"
    std::string interface;  // the Linux interface below it; "" if there is none
    MacAddr mac;
    int socket = -1;
    uint16_t mtu = 1500;
    uint16_t rx_queues = 1;  // granted; may be fewer than workers
    uint16_t tx_queues = 1;  // granted; may be fewer than workers: then some workers send for others
    uint16_t rx_descriptors = 0;
    uint16_t tx_descriptors = 0;
    std::vector<std::string> offloads;  // granted: "rx-ipv4-cksum", "rss"
    bool rx_checksum_checked = false;   // IPv4 header checksums are verified on receipt
    FlowSupport flow_support;           // probed at start
    FlowPortFacts flow_facts;
    bool is_isolated = false;
    SteeringPlan steering;  // of a started port
    // Each request to the device, what was granted, and the reason for a difference.
    std::vector<PortSetting> settings;
    bool rx_interrupts = false;  // of a started port: each receive queue can wake a sleeping worker
    std::string check_failed;    // finding of the self-check against predictable RSS; "" if none
};

struct NicPortCounters {
    uint64_t rx_packets = 0, rx_bytes = 0, tx_packets = 0, tx_bytes = 0;
    // Dropped before a worker could receive them, because no buffer or descriptor was free.
    uint64_t rx_missed = 0;
    uint64_t rx_errors = 0;
    uint64_t tx_errors = 0;
};

class NicPort {
 public:
    // Takes the port's lock, prepares the Linux interface below it, installs the guard if the driver needs
    // one, probes the device and reads its capabilities. Errors name the device and the rule. Main thread,
    // after Eal::start(); `sink` is used only during the call.
    static Result<std::unique_ptr<NicPort>> probe(NicPortId id, const NicPortOptions& options,
                                                  const NoticeSink& sink);
    ~NicPort();  // stops, closes and removes the device, then lifts the guard
    // Takes the port's lock, if the options have postponed it. AlreadyExists: another process has it.
    Status lock();
    void unlock();
    // For the process that follows, on a port with a Linux interface below it: the destructor leaves the
    // interface as it is. Returns what has to be restored; no changes without an interface.
    [[nodiscard]] InterfaceChanges leave_interface();
    void inherit_interface(const InterfaceChanges& former);
    NicPort(const NicPort&) = delete;
    NicPort& operator=(const NicPort&) = delete;

    // Adds this port's share of the pool of its socket.
    void add_demand(MempoolDemand& demand) const;
    // Queues, offloads, RSS, MTU. `workers` determines the steering plan.
    Status configure(rte_mempool* pool, unsigned workers);
    // Starts the flow of frames. Reads the settings that only a started device reports (RSS key and table),
    // verifies them, and chooses the steering method. A device that can loop back its transmit side is
    // started twice, the first time for that check.
    Status start();
    void stop();  // no worker may poll any more; idempotent
    // Drops what a started port has received so far, uncounted. Before workers poll it. Main thread. Without
    // effect on a port that is not started.
    void discard_received();

    // The destructor leaves the device as it is, because another process has it. This process must end.
    void abandon();

    // The device no longer exists: its PMD reported the removal, or its Linux interface was removed. Control
    // threads.
    [[nodiscard]] bool is_gone() const;
    // After is_gone(), when no worker uses the port any more: closes the device and releases the host's
    // resources. Facts and the last counters stay. Only on the thread that started the port.
    void remove();
    [[nodiscard]] bool is_removed() const noexcept { return removed_.load(std::memory_order_relaxed); }
    // True if the PMD reported a link change since the last call. One control thread.
    [[nodiscard]] bool take_link_change();

    [[nodiscard]] const NicPortFacts& facts() const noexcept { return facts_; }
    [[nodiscard]] const NicPortOptions& options() const noexcept { return options_; }
    [[nodiscard]] const Capabilities& capabilities() const noexcept { return capabilities_; }
    [[nodiscard]] NicPortCounters counters() const;  // any control thread
    [[nodiscard]] bool link_up() const;              // any control thread; does not block
    [[nodiscard]] std::vector<std::string> members()
        const;  // of a bond: device names, active members first; any control thread

 private:
    NicPort() = default;
    Status prepare_device(const NoticeSink& sink);
    Status bring_to_life();
    Status gather_members();
    Status ask_capabilities();
    void note_queues(const char* name, unsigned asked, unsigned granted);
    Status configure_device_with_rss();
    Status configure_device(bool loopback);
    Status set_up_queues();
    [[nodiscard]] int set_up_receive_queues();
    Status await_receive_queues();
    void note_xdp_mode();
    int configure_with_interrupts(rte_eth_conf& config);
    Status start_device();
    int start_with_interrupts();
    void record_interrupts();
    void close();
    Status restart_device(bool loopback);
    Status isolate_device();
    void ask_flow_support();
    [[nodiscard]] SteeringFacts read_steering_facts();
    Status check_steering(SteeringFacts& found);
    Status loop_back(const SteeringFacts& found, std::span<const KnownPacket> packets,
                     LoopbackAnswer& answer);

    NicPortOptions options_;
    NicPortFacts facts_;
    Capabilities capabilities_;
    const PmdProfile* profile_ = nullptr;
    DeviceString device_;
    uint32_t buffer_bytes_ = 0;  // room for a frame in an mbuf, as the driver requires
    unsigned workers_ = 1;
    rte_mempool* pool_ = nullptr;
    std::vector<XdpSocket> xdp_sockets_;  // of net_af_xdp
    RssRequest rss_;                      // outlives the configured device, which keeps a pointer to the key
    bool rss_granted_ = false;
    Status isolated_;  // result of the isolation request
    // In the order of acquisition: the lock outlives the guard, and both outlive the device.
    FileLock lock_;
    std::vector<FileLock> member_locks_;  // of a bond
    std::unique_ptr<KernelInterface> interface_;
    std::unique_ptr<IngressGuard> guard_;
    InterruptWish interrupts_;
    std::unique_ptr<PortEvents> events_;
    bool probed_ = false;
    bool started_ = false;
    // Serialises remove() with readers on other threads.
    mutable std::mutex in_use_;
    std::atomic<bool> removed_{false};
    NicPortCounters last_counters_;
    mutable PacketSockets packet_sockets_;  // of net_af_packet; released before the device
};

}  // namespace penstock::drivers
