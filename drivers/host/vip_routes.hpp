// SPDX-License-Identifier: Apache-2.0
// Announcement of VIPs as kernel routes: `VIP/32|/128 dev TWIN proto 80 metric M` in the main table, which
// routing daemons on the host export (PRESENCE-002). The routes end with their twin, so they are withdrawn if
// the process crashes.
//
// Each route has a permanent neighbour entry with a fixed Ethernet address. Packets of the host's own
// programs to the VIP therefore enter the twin without ARP or ND, and a worker serves them. The address is
// not the twin's: frames to the twin's address are those from the wire (dataplane/pipeline/classify.cpp).
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "dataplane/base/ip.hpp"
#include "dataplane/base/result.hpp"
#include "drivers/host/netlink_messages.hpp"

struct nl_sock;

namespace penstock::drivers {

// Locally administered.
inline constexpr MacAddr kVipNeighbourMac{{0x02, 0x50, 0x53, 0x56, 0x49, 0x50}};

struct VipRouteChange {
    enum class Kind : uint8_t {
        Add,  // refused if another route has the same prefix and metric
        // Added also if another route has them: the VIP's own route by another twin, which is removed next.
        AddBeside,
        Remove,  // only a route of protocol 80 by this twin with this metric
    };
    Kind kind = Kind::Add;
    VipRoute route;
    bool operator==(const VipRouteChange&) const = default;
};

enum class VipRouteOutcome : uint8_t {
    Done,     // also for the removal of a route that is already gone
    Exists,   // Add: some route has the prefix and the metric already
    Refused,  // any other reason of the kernel, for example a twin that is down
    Unknown,  // the kernel's answer was lost: read() tells whether the change took effect
};

// The neighbour entry of a VIP's routes by one twin.
struct VipNeighbour {
    IpAddr address;
    NicPortId port;
    auto operator<=>(const VipNeighbour&) const = default;
};

// One thread.
class VipRoutes {
 public:
    // The answers to a batch fit in, also if all changes are refused.
    static constexpr int kReceiveBuffer = 1 << 20;

    // `twins` by interface index. Errors are the kernel's. `receive_bytes` is smaller in tests only.
    static Result<std::unique_ptr<VipRoutes>> open(TwinsByIndex twins, int receive_bytes = kReceiveBuffer);
    ~VipRoutes();
    VipRoutes(const VipRoutes&) = delete;
    VipRoutes& operator=(const VipRoutes&) = delete;

    // The routes of protocol 80 on the twins, sorted; blocks for the duration of a dump that the kernel
    // filters by protocol.
    Result<std::vector<VipRoute>> read();

    // Applies the changes in their order, 64 in a system call (about 3 us each to add, 1.5 us to remove),
    // and returns one outcome for each. A route that is added gets its neighbour entry. The entry of a
    // removed route stays: routes leave faster without it, and another route may use it.
    [[nodiscard]] std::vector<VipRouteOutcome> apply(std::span<const VipRouteChange> changes);

    // Removes neighbour entries (about 1 us each). Failures are ignored: entries end with their twin.
    void remove_neighbours(std::span<const VipNeighbour> neighbours);

 private:
    VipRoutes(TwinsByIndex twins, nl_sock* changes, nl_sock* dumps);
    void exchange(std::span<const VipRouteChange> changes, std::span<VipRouteOutcome> outcomes);
    // Sends messages, of which the last one asks for an answer. False: nothing was sent.
    [[nodiscard]] bool send(std::span<const uint8_t> batch);
    // Calls `answered` with the sequence number and the error of each answer, until the one with `last`.
    // False: answers were lost.
    bool receive(uint32_t last, const std::function<void(uint32_t sequence, int error)>& answered);
    [[nodiscard]] int ifindex_of(NicPortId port) const noexcept;

    const TwinsByIndex twins_;
    nl_sock* const changes_;
    nl_sock* const dumps_;
    uint32_t sequence_ = 0;
};

}  // namespace penstock::drivers
