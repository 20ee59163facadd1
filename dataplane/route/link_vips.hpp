// SPDX-License-Identifier: Apache-2.0
// The VIPs for which workers answer ARP and neighbour discovery, each on the link of one NicPort. Immutable
// once published. The control plane decides which VIPs these are (control/gateway/care/vip_responder.hpp).
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
    auto operator<=>(const LinkVip&) const = default;
};

class LinkVips {
 public:
    // Any order; duplicates are allowed.
    explicit LinkVips(std::vector<LinkVip> vips) : vips_(std::move(vips)) { std::ranges::sort(vips_); }

    // Any worker. For packets that leave the common path: one binary search.
    [[nodiscard]] bool has(NicPortId port, const IpAddr& address) const noexcept {
        return std::ranges::binary_search(vips_, LinkVip{address, port});
    }
    [[nodiscard]] std::span<const LinkVip> all() const noexcept { return vips_; }  // sorted

 private:
    std::vector<LinkVip> vips_;
};

}  // namespace penstock::route
