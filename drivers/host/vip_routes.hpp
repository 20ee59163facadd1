// SPDX-License-Identifier: Apache-2.0
// Announcement of VIPs as kernel routes: `VIP/32|/128 dev TWIN proto 80 metric M` in the main table, which
// routing daemons on the host export (PRESENCE-002). The routes end with their twin, so they are withdrawn if
// the process crashes.
//
// Each route has a permanent neighbour entry with a fixed Ethernet address. Packets of the host's own
// programs to the VIP therefore enter the twin without ARP or ND, and a worker serves them. The address is
// not the twin's: frames to the twin's address are those from the wire (dataplane/pipeline/classify.cpp).
#pragma once

#include <cstdint>
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
};

// One thread.
class VipRoutes {
 public:
    // `twins` by interface index. Errors are the kernel's.
    static Result<std::unique_ptr<VipRoutes>> open(TwinsByIndex twins);
    ~VipRoutes();
    VipRoutes(const VipRoutes&) = delete;
    VipRoutes& operator=(const VipRoutes&) = delete;

    // The routes of protocol 80 on the twins, sorted; blocks for the duration of a dump that the kernel
    // filters by protocol.
    Result<std::vector<VipRoute>> read();

    // Applies the changes in their order, 64 in a system call (about 5 us each), and returns one outcome for
    // each. Unavailable: the socket failed; which changes were applied is unknown until read().
    Result<std::vector<VipRouteOutcome>> apply(std::span<const VipRouteChange> changes);

 private:
    VipRoutes(TwinsByIndex twins, nl_sock* changes, nl_sock* dumps);
    // Sends one batch and waits for its acknowledgements.
    Status exchange(std::span<const VipRouteChange> changes, std::span<VipRouteOutcome> outcomes);
    [[nodiscard]] int ifindex_of(NicPortId port) const noexcept;

    const TwinsByIndex twins_;
    nl_sock* const changes_;
    nl_sock* const dumps_;
    uint32_t sequence_ = 0;
};

}  // namespace penstock::drivers
