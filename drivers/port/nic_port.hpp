// A NicPort: one DPDK port, from the device string of the command line to frames on its queues. Life: probe -> configure -> start -> stop
// -> destruction. What was asked of the device, what it granted and what it is known for end up in NicPortFacts, for status and for the
// worker room's PortPlan.
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
    unsigned rx_queues = 1;                   // wanted: one per worker
    unsigned tx_queues = 1;                   // wanted: one per worker
    std::vector<uint8_t> rss_key;  // random_rss_key(), the same for all ports; empty: each device's own
    bool rx_interrupts = false;    // wanted: workers sleep when idle
    bool flow_rules = true;        // the device may be asked what rules it takes
    bool isolate = false;  // leave to the kernel what no rule takes, where the kernel shares the device
    std::string lock_directory = "/run/penstock";
};

struct NicPortFacts {
    NicPortId id;
    uint16_t dpdk_port = 0;
    std::string name;       // of the device: "0000:03:00.0", "net_af_packet0"
    std::string driver;     // "net_af_packet"
    std::string interface;  // the Linux interface underneath; "" where there is none
    MacAddr mac;
    int socket = -1;
    uint16_t mtu = 1500;
    uint16_t rx_queues = 1;  // granted; may be fewer than workers
    uint16_t tx_queues = 1;  // granted; may be fewer than workers: then some worker sends for others
    uint16_t rx_descriptors = 0;
    uint16_t tx_descriptors = 0;
    std::vector<std::string> offloads;  // granted: "rx-ipv4-cksum", "rss"
    bool rx_checksum_checked = false;   // IPv4 header checksums are verified on receipt
    FlowSupport flow_support;           // asked when it was started
    FlowPortFacts flow_facts;
    bool is_isolated = false;
    SteeringPlan steering;              // of a started port
    std::vector<PortSetting> settings;  // each thing asked of the device, granted, and why not
    bool rx_interrupts = false;         // of a started port: every receive queue can wake a sleeping worker
    std::string check_failed;  // what the self-check saw that speaks against predictable RSS; "" nothing
};

struct NicPortCounters {
    uint64_t rx_packets = 0, rx_bytes = 0, tx_packets = 0, tx_bytes = 0;
    uint64_t rx_missed =
        0;  // dropped because no buffer or descriptor was free, before a worker could see them
    uint64_t rx_errors = 0;
    uint64_t tx_errors = 0;
};

class NicPort {
 public:
    // Takes the port's lock, prepares the Linux interface underneath and puts the guard on it where the driver needs one, brings the
    // device to life and asks what it can do. Errors name the device and the rule. Main thread, after Eal::start(); `sink` is used only
    // during the call.
    static Result<std::unique_ptr<NicPort>> probe(NicPortId id, const NicPortOptions& options,
                                                  const NoticeSink& sink);
    ~NicPort();  // stops, closes and removes the device, then lifts the guard
    NicPort(const NicPort&) = delete;
    NicPort& operator=(const NicPort&) = delete;

    // What this port needs of the pool of its socket.
    void add_demand(MempoolDemand& demand) const;
    // Queues, offloads, RSS, MTU. `workers` decides about the steering plan.
    Status configure(rte_mempool* pool, unsigned workers);
    // Frames flow from here on. Settles what only a started device tells, RSS key and table, puts it to the test, and decides about
    // steering. A device that can lead its transmit side back is started twice, the first time for that test.
    Status start();
    void stop();  // no worker may poll any more; idempotent

    // The device is there no more: its PMD told so, or the Linux interface that it worked on has vanished. Control threads.
    [[nodiscard]] bool is_gone() const;
    // After is_gone(), when no worker touches the port any more: closes the device and gives back what was taken of the host. Facts and
    // the last counters stay. The thread that started the port.
    void remove();
    [[nodiscard]] bool is_removed() const noexcept { return removed_.load(std::memory_order_relaxed); }
    // Whether the PMD told of a change of the link since the last call. One control thread.
    [[nodiscard]] bool take_link_change();

    [[nodiscard]] const NicPortFacts& facts() const noexcept { return facts_; }
    [[nodiscard]] const NicPortOptions& options() const noexcept { return options_; }
    [[nodiscard]] const Capabilities& capabilities() const noexcept { return capabilities_; }
    [[nodiscard]] NicPortCounters counters() const;  // any control thread
    [[nodiscard]] bool link_up() const;              // any control thread; does not wait
    [[nodiscard]] std::vector<std::string> members()
        const;  // of a bond: device names, those at work first; any control thread

 private:
    NicPort() = default;
    Status prepare_device(const NoticeSink& sink);
    Status bring_to_life();
    Status gather_members();
    Status ask_capabilities();
    void note_queues(const char* name, unsigned asked, unsigned granted);
    Status configure_device(bool loopback);
    Status set_up_queues();
    void note_xdp_mode(const XdpSockets& before);
    int configure_with_interrupts(rte_eth_conf& config);
    Status start_device();
    int start_with_interrupts();
    void settle_interrupts();
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
    uint32_t buffer_bytes_ = 0;  // room for a frame in an mbuf, as the driver wants it
    unsigned workers_ = 1;
    rte_mempool* pool_ = nullptr;
    RssRequest rss_;  // outlives the configured device, which keeps a pointer to the key
    bool rss_granted_ = false;
    Status isolated_;  // what came of asking the device for it
    // In the order in which they are taken: the lock outlives the guard, and both outlive the device.
    FileLock lock_;
    std::vector<FileLock> member_locks_;  // of a bond
    std::unique_ptr<KernelInterface> interface_;
    std::unique_ptr<IngressGuard> guard_;
    InterruptWish interrupts_;
    std::unique_ptr<PortEvents> events_;
    bool probed_ = false;
    bool started_ = false;
    // Between remove() and those who look from other threads.
    mutable std::mutex in_use_;
    std::atomic<bool> removed_{false};
    NicPortCounters last_counters_;
    mutable PacketSockets packet_sockets_;  // of net_af_packet; goes before the device
};

}  // namespace penstock::drivers
