// SPDX-License-Identifier: Apache-2.0
// VIPs as addresses on the TAP twins, so that Linux answers ARP and ND for them and routing daemons see them.
// They have a protocol mark (kVipAddressProtocol; `ip address` shows it as "proto 80"), by which the mirror
// distinguishes them from the host's own addresses. Twins exist no longer than the process, so the VIPs are
// removed if it crashes.
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
    // `twins` by interface index. Errors are the kernel's.
    static Result<std::unique_ptr<VipAddresses>> open(TwinsByIndex twins);
    ~VipAddresses();
    VipAddresses(const VipAddresses&) = delete;
    VipAddresses& operator=(const VipAddresses&) = delete;

    // Adds a VIP to its twin as /32 or /128, without duplicate address detection. The host's own packets use
    // it as their source only if there is no other address. False: the twin has the address already, from any
    // origin. Unsupported: the kernel does not keep marks (before Linux 5.18); then nothing was added.
    Result<bool> add(const route::LocalAddress& vip);
    // Success also if the twin does not have the address.
    Status remove(const route::LocalAddress& vip);

 private:
    VipAddresses(TwinsByIndex twins, nl_sock* netlink);
    // False: no change was needed.
    [[nodiscard]] Result<bool> change(int type, int flags, const route::LocalAddress& vip);
    [[nodiscard]] bool is_marked(const route::LocalAddress& vip);
    [[nodiscard]] int ifindex_of(NicPortId port) const noexcept;

    const TwinsByIndex twins_;
    nl_sock* const netlink_;
    bool keeps_marks_ = false;
};

}  // namespace penstock::drivers
