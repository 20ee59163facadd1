// SPDX-License-Identifier: Apache-2.0
// Announcement on a link that an address has moved here. Linux sends none for an address that is added to an
// interface, and does not know the VIPs that workers answer for. Neighbours with an entry for the address
// adopt the new Ethernet address at once, and not only when their entry expires.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "dataplane/base/ip.hpp"
#include "dataplane/base/result.hpp"
#include "dataplane/route/route_table.hpp"
#include "drivers/host/netlink_messages.hpp"

namespace penstock::drivers {

// The frame. IPv4: an ARP announcement (RFC 5227, 3). IPv6: an unsolicited neighbour advertisement to all
// nodes with the override flag (RFC 4861, 7.2.6). `mac` is the interface's own. Pure.
[[nodiscard]] std::vector<uint8_t> announcement_of(const IpAddr& address, const MacAddr& mac);

// Sends announcements through the twins. A worker then sends them by the twin's port, as all frames of Linux.
// One thread.
class VipAnnouncements {
 public:
    // `twins` by interface index. PermissionDenied, with the kernel's reason.
    static Result<std::unique_ptr<VipAnnouncements>> open(TwinsByIndex twins);
    ~VipAnnouncements();
    VipAnnouncements(const VipAnnouncements&) = delete;
    VipAnnouncements& operator=(const VipAnnouncements&) = delete;

    // Announces the VIP on the link, once. `mac` is the twin's. A frame that cannot be sent is lost, as on
    // any link.
    void send(const route::LocalAddress& vip, const MacAddr& mac) noexcept;

 private:
    VipAnnouncements(TwinsByIndex twins, int link);

    const TwinsByIndex twins_;
    const int link_;  // AF_PACKET
};

}  // namespace penstock::drivers
