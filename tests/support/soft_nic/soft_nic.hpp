// A NIC in software that behaves as hardware does: `net_soft0`, `net_soft1`, ... are DPDK devices whose driver is soft_nic_device.cpp and
// whose silicon is what lies beside it. Code under test probes one by its name with arguments (drivers::NicPort, or EAL's hotplug) and sees
// an ordinary Ethernet port; the test holds the other end of its wire.
//
//   put() --> frame_fields --> flow_table --> [isolated: kernel()] --> rss --> RETA --> queue's ring --> rte_eth_rx_burst
//   take() <-- queue's ring <-- checksum offload <-- rte_eth_tx_burst          (lpbk_mode: back to frame_fields)
//
// It computes RSS by DPDK's rte_softrss and knows nothing of Penstock's own rooms, so that the two can be held against each other.
//
// Arguments (`net_soft0,queues=4,reta=512,...`); lists join their words by '+':
//   queues=1..64          receive and transmit queues, each (16)
//   key_bytes=40|52       length of the RSS key (40)
//   key=set|fixed|ignored|hidden    may be set and read; only read; accepted, and the old one stays (and is read); neither (set)
//   reta=64..512          entries of the redirection table, a power of two (128); 0: none, hash % queues
//   reta_access=set|fixed|ignored|hidden|partly|beyond    partly: accepted, and all but the last entry are others; beyond: accepted, and
//   the
//                         last entry is shown as a queue that is not there
//   rss=LIST|none         what is offered, of ipv4 tcp4 udp4 ipv6 tcp6 udp6 (all): what is not hashes by addresses, or goes to queue 0
//   rss_hash=0|1          whether the hash can be had in the mbuf (1)
//   spread=rss|random|zero|wander|lies    what really chooses the queue: as told; another one for each packet; always the first; every
//   flow's
//                         changes as time goes by; as told, but by another key than is told (rss)
//   seed=N                of `random` (1)
//   flow_rules=N          capacity of the flow table (1024); 0: a port without rte_flow
//   flow_items=LIST       of eth vlan ipv4 ipv6 tcp udp (all)
//   flow_actions=LIST     of queue drop mark rss count passthru (all)
//   flow_masks=any|whole  `whole`: fields are matched in whole or not at all (any)
//   flow_priorities=N     priorities that a rule may have, 0 first (1)
//   isolate=0|1|stopped   whether rte_flow_isolate can be had: at any time, or of a stopped port only, as with mlx5 (1)
//   checksum=0|1          checksums verified on receipt and filled in on sending (1)
//   loopback=0|1          whether rte_eth_conf::lpbk_mode can be had (1)
//   interrupts=0|1        for receive queues, link state and removal (1)
//   mtu_max=N             IP bytes (9216)
//   mac=02:00:00:00:00:01 (02:73:6f:66:74:NN, NN being the device's number)
//
// The test's thread plays the wire and one control thread the driver's owner; workers poll queues, each queue by one.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

struct rte_mbuf;

namespace penstock::test {

// What became of a frame that arrived.
struct Received {
    enum class Fate : uint8_t {
        Queued,    // in the ring of `queue`
        Dropped,   // by a rule
        ToKernel,  // the port is isolated and no rule has it: kernel() gets it, as on a bifurcated driver
        Missed,    // no room, or no mbuf, although it was waited for
        NotTaken,  // the port is stopped, removed or without link; the frame too long, or for another MAC address
    };
    Fate fate = Fate::NotTaken;
    uint16_t queue = 0;
    bool operator==(const Received&) const = default;
};

class SoftNicDevice;  // the driver's side

class SoftNic {
 public:
    // The device of that name ("net_soft0") as it was probed, null where there is none. It lives until the port is closed.
    static SoftNic* find(const std::string& name);

    [[nodiscard]] uint16_t dpdk_port() const;
    // What the cable does. Raises RTE_ETH_EVENT_INTR_LSC where that was asked for.
    void set_link(bool up);
    // Surprise removal: nothing is received or sent any more, and RTE_ETH_EVENT_INTR_RMV is raised where that was asked for.
    void remove();

    [[nodiscard]] size_t flow_rules() const;
    [[nodiscard]] bool is_isolated() const;
    [[nodiscard]] bool is_looped_back() const;
    // Raised so far for receive queues: one for each time that a queue was armed and something came.
    [[nodiscard]] uint64_t interrupts() const;
    // Receives only what the queue has room for: what is beyond is missed at once, where a wire waits a while for the test's sake.
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

    // The port receives this frame. Where its ring is full, waits up to two seconds for the worker.
    Received put(std::span<const uint8_t> frame);
    // The next frame that the port has sent, by any of its queues; empty after about two seconds without one.
    [[nodiscard]] std::vector<uint8_t> take();
    // Null where nothing is waiting. The caller owns it.
    [[nodiscard]] rte_mbuf* try_take();
    // Bursts for those in a hurry: how many of `out` were written. The caller owns them.
    [[nodiscard]] size_t take_burst(std::span<rte_mbuf*> out);
    // The next frame that went to the kernel, empty where there is none. The last thousand are kept.
    [[nodiscard]] std::vector<uint8_t> kernel();

 private:
    SoftNic* nic_;
};

}  // namespace penstock::test
