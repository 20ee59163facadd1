// VIPs on the TAP twins as addresses of Linux's own, so that Linux answers ARP and ND for them and routing daemons see them. They bear a
// mark (kVipAddressProtocol; `ip address` shows it as "proto 80"), by which the mirror tells them from the host's own. Twins live no longer
// than the process, and take them along when it crashes.
#pragma once

#include <memory>

#include "dataplane/base/ip.hpp"
#include "dataplane/base/result.hpp"
#include "dataplane/route/route_table.hpp"
#include "drivers/host/netlink_messages.hpp"

struct nl_sock;

namespace penstock::drivers {

// One thread.
class VipAddresses {
 public:
    // By interface index. Errors are the kernel's.
    static Result<std::unique_ptr<VipAddresses>> open(TwinsByIndex twins);
    ~VipAddresses();
    VipAddresses(const VipAddresses&) = delete;
    VipAddresses& operator=(const VipAddresses&) = delete;

    // Puts a VIP on its twin as /32 or /128, never as a source of the host's own packets while there is another, and without duplicate
    // address detection. False: the twin has it already, whoever put it there. Unsupported: the kernel keeps no marks (before Linux
    // 5.18); then nothing was put.
    Result<bool> add(const route::LocalAddress& vip);
    // Done also where the twin has it no more.
    Status remove(const route::LocalAddress& vip);
    // Tells the link, once. `mac` is the twin's. A frame that cannot be sent is lost, as on any link.
    void announce(const route::LocalAddress& vip, const MacAddr& mac) noexcept;

 private:
    VipAddresses(TwinsByIndex twins, nl_sock* netlink, int link);
    // False: it is as wanted already.
    [[nodiscard]] Result<bool> change(int type, int flags, const route::LocalAddress& vip);
    [[nodiscard]] bool is_marked(const route::LocalAddress& vip);
    [[nodiscard]] int ifindex_of(NicPortId port) const noexcept;

    const TwinsByIndex twins_;
    nl_sock* const netlink_;
    const int link_;  // AF_PACKET
    bool keeps_marks_ = false;
};

}  // namespace penstock::drivers
