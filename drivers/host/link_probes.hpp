// SPDX-License-Identifier: Apache-2.0
// Finds out whether another host of a link has an address, before this one uses it (RFC 5227, 2.1; RFC 4862,
// 5.4). Probes leave through the twins, as all frames of Linux. Workers pass the answers to the twins.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "dataplane/base/bytes.hpp"
#include "dataplane/base/ip.hpp"
#include "dataplane/base/result.hpp"
#include "dataplane/route/link_vips.hpp"
#include "drivers/host/netlink_messages.hpp"

namespace penstock::drivers {

// The probe for an address. `mac` is the interface's own. Pure.
[[nodiscard]] std::vector<uint8_t> probe_of(const IpAddr& address, const MacAddr& mac);

struct AddressClaim {
    IpAddr address;
    MacAddr mac;
};
// The address that the sender of a frame has by this frame: by an answer, or by an announcement. Empty: none.
// Pure.
[[nodiscard]] std::optional<AddressClaim> claim_in(ByteView frame);

// One thread.
class LinkProbes {
 public:
    // `twins` by interface index. PermissionDenied, with the kernel's reason.
    static Result<std::unique_ptr<LinkProbes>> open(TwinsByIndex twins);
    ~LinkProbes();
    LinkProbes(const LinkProbes&) = delete;
    LinkProbes& operator=(const LinkProbes&) = delete;

    // Sends one probe. `mac` is the twin's. False: it could not be sent.
    [[nodiscard]] bool send(const route::LinkVip& vip, const MacAddr& mac) noexcept;
    // Reads what has arrived since the last call, at most kPerCall frames: each claim, with the port of its
    // link. Claims of this host are included.
    static constexpr int kPerCall = 4'096;
    void receive(const std::function<void(NicPortId port, const AddressClaim& claim)>& take);

 private:
    LinkProbes(TwinsByIndex twins, int arp, int nd);

    const TwinsByIndex twins_;
    const int arp_, nd_;  // AF_PACKET, one for each protocol
};

}  // namespace penstock::drivers
