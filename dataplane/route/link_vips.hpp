// SPDX-License-Identifier: Apache-2.0
// The VIPs and SNAT addresses of shares for which workers answer ARP and neighbour discovery, each on the
// link of one NicPort. Immutable once published. The control plane decides which VIPs these are
// (control/gateway/care/vip_responder.hpp).
#pragma once

#include <algorithm>
#include <compare>
#include <span>
#include <utility>
#include <vector>

#include "dataplane/base/ids.hpp"
#include "dataplane/base/ip.hpp"

namespace penstock::route {

struct LinkVip {
    IpAddr address;
    NicPortId port;
    bool is_snat = false;  // a SNAT address of a share: it is answered for without a frontend
    auto operator<=>(const LinkVip&) const = default;
};

class LinkVips {
 public:
    // Any order; duplicates are allowed.
    explicit LinkVips(std::vector<LinkVip> vips) : vips_(std::move(vips)) { std::ranges::sort(vips_); }

    // Null: none. Any worker. For packets that leave the common path: one binary search.
    [[nodiscard]] const LinkVip* find(NicPortId port, const IpAddr& address) const noexcept {
        const auto found = std::ranges::lower_bound(vips_, LinkVip{address, port});
        return found != vips_.end() && found->address == address && found->port == port ? &*found : nullptr;
    }
    [[nodiscard]] std::span<const LinkVip> all() const noexcept { return vips_; }  // sorted

 private:
    std::vector<LinkVip> vips_;
};

}  // namespace penstock::route
