// SPDX-License-Identifier: Apache-2.0
// A NIC in software that behaves like hardware. `net_soft0`, `net_soft1`, ... are DPDK devices; their driver
// is soft_nic_device.cpp, and the files beside it simulate the silicon. Code under test probes a device by
// name and arguments (drivers::NicPort, or EAL's hotplug) and uses it as an ordinary Ethernet port. The test
// holds the other end of its cable.
//
//   put() --> frame_fields --> flow_table --> [isolated: kernel()] --> rss --> RETA --> ring --> rx_burst
//   take() <-- ring <-- checksum offload <-- tx_burst          (lpbk_mode: back to frame_fields)
//
// Each queue has a ring; rx_burst and tx_burst are rte_eth_rx_burst and rte_eth_tx_burst.
//
// It computes RSS by DPDK's rte_softrss and is independent of Penstock's own rooms, so that both can be
// compared.
//
// Arguments (`net_soft0,queues=4,reta=512,...`); lists join their words by '+':
//   queues=1..64          receive queues, and as many transmit queues (16)
//   key_bytes=40|52       length of the RSS key (40)
//   key=set|fixed|ignored|hidden
//                         set: writable and readable; fixed: readable only; ignored: writes are accepted
//                         without effect, and the old key is read; hidden: neither (set)
//   reta=64..512          entries of the redirection table, a power of two (128); 0: none, hash % queues
//   reta_access=set|fixed|ignored|hidden|partly|beyond
//                         as for key; partly: writes are accepted, and all entries but the last differ;
//                         beyond: writes are accepted, and the last entry reads as a queue that does not
//                         exist
//   rss=LIST|none         hash types offered, of ipv4 tcp4 udp4 ipv6 tcp6 udp6 (all). Packets of other types
//                         are hashed by addresses, or go to queue 0
//   rss_hash=0|1          the hash is available in the mbuf (1)
//   spread=rss|random|zero|wander|lies
//                         actual choice of the queue. rss: as configured; random: a random one for each
//                         packet; zero: always the first; wander: that of every flow changes over time;
//                         lies: as configured, but with another key than the one reported (rss)
//   seed=N                seed of `random` (1)
//   flow_rules=N          capacity of the flow table (1024); 0: a port without rte_flow
//   flow_items=LIST       of eth vlan ipv4 ipv6 tcp udp (all)
//   flow_actions=LIST     of queue drop mark rss count passthru (all)
//   flow_masks=any|whole  `whole`: fields are matched completely or not at all (any)
//   flow_priorities=N     number of priorities of rules, 0 first (1)
//   isolate=0|1|stopped   rte_flow_isolate is available: always, or on a stopped port only, as with mlx5 (1)
//   checksum=0|1          checksums are verified on receipt and filled in on sending (1)
//   loopback=0|1          rte_eth_conf::lpbk_mode is available (1)
//   interrupts=0|1        interrupts of receive queues, link state and removal (1)
//   mtu_max=N             IP bytes (9216)
//   mac=02:00:00:00:00:01 (02:73:6f:66:74:NN, NN being the device's number)
//
// The test's thread plays the wire, and one control thread plays the driver's owner. Workers poll the queues,
// each queue by one worker.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

struct rte_mbuf;

namespace penstock::test {

// Result for an arriving frame.
struct Received {
    enum class Fate : uint8_t {
        Queued,    // in the ring of `queue`
        Dropped,   // by a flow rule
        ToKernel,  // the port is isolated and no rule matches: kernel() gets it, as on a bifurcated driver
        Missed,    // no room or no mbuf, even after waiting
        // The port is stopped, removed or without link; or the frame is too long, or for another MAC address.
        NotTaken,
    };
    Fate fate = Fate::NotTaken;
    uint16_t queue = 0;
    bool operator==(const Received&) const = default;
};

class SoftNicDevice;  // the driver's side

class SoftNic {
 public:
    // The probed device of that name ("net_soft0"), null if there is none. It lives until the port is closed.
    static SoftNic* find(const std::string& name);

    [[nodiscard]] uint16_t dpdk_port() const;
    // Sets the state of the cable. Raises RTE_ETH_EVENT_INTR_LSC if it was requested.
    void set_link(bool up);
    // Surprise removal: nothing is received or sent any more, and RTE_ETH_EVENT_INTR_RMV is raised if it was
    // requested.
    void remove();

    [[nodiscard]] size_t flow_rules() const;
    [[nodiscard]] bool is_isolated() const;
    [[nodiscard]] bool is_looped_back() const;
    // Number of receive queue interrupts so far: one for each time that a queue was armed and a frame
    // arrived.
    [[nodiscard]] uint64_t interrupts() const;
    // False: frames for a full queue are missed at once. True: the wire waits a while for room.
    void set_patience(bool waits);

 private:
    friend class SoftNicDevice;
    friend class SoftWire;
    explicit SoftNic(SoftNicDevice& device) : device_(&device) {}
    SoftNicDevice* device_;
};

// The other end of a port's cable.
class SoftWire {
 public:
    explicit SoftWire(SoftNic& nic) : nic_(&nic) {}

    // The port receives this frame. If its ring is full, waits up to two seconds for the worker.
    Received put(std::span<const uint8_t> frame);
    // The next frame sent by the port on any of its queues; empty after about two seconds without one.
    [[nodiscard]] std::vector<uint8_t> take();
    // Null if nothing is waiting. The caller owns the mbuf.
    [[nodiscard]] rte_mbuf* try_take();
    // Burst variant for speed: returns how many of `out` were written. The caller owns them.
    [[nodiscard]] size_t take_burst(std::span<rte_mbuf*> out);
    // The next frame that went to the kernel, empty if there is none. The last thousand are kept.
    [[nodiscard]] std::vector<uint8_t> kernel();

 private:
    SoftNic* nic_;
};

}  // namespace penstock::test
