// SPDX-License-Identifier: Apache-2.0
// The gateways that may serve a packet which matches no connection and no copy here (docs/adr/0051). Part of
// the snapshot; immutable. A packet whose first gateway is another one is a stray. The result depends on the
// plan alone, so that a stray makes one hop.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "dataplane/base/ip.hpp"
#include "dataplane/base/protocol.hpp"
#include "dataplane/shares/share_map.hpp"

namespace penstock::shares {

class Strays {
 public:
    // The number of a gateway in gateways().
    using GatewayNumber = uint8_t;
    static constexpr GatewayNumber kNone = 0xff;
    struct Gateway {
        std::string name;
        IpAddr link;  // link= of the plan; unspecified: none
        // False: the gateway is lost, drains, or has not returned to its shares yet.
        bool takes_strays = false;
        bool operator==(const Gateway&) const = default;
    };
    struct Gateways {
        GatewayNumber primary = kNone;
        GatewayNumber heir = kNone;
        bool operator==(const Gateways&) const = default;
    };
    struct Parts {
        ShareMap map;
        std::vector<Gateways> shares;  // by number, map.shares() of them
        std::vector<Gateway> gateways;
        GatewayNumber self = kNone;
        std::map<IpAddr, uint8_t> snat;         // the share of each SNAT address
        std::vector<uint8_t> snat_groups = {};  // of each share (nat::SnatAddress::group); empty: 0 for all
    };
    explicit Strays(Parts parts);

    // The gateways that may serve a packet, the preferred one first. The first one that can take the packet
    // is used.
    struct Candidates {
        uint8_t share = 0;
        std::array<GatewayNumber, 2> gateways{kNone, kNone};
        bool is_spread = false;  // any gateway gets such packets, while all of them are well
        bool operator==(const Candidates&) const = default;
    };
    // Of packets to the VIPs of a share; both kNone: there is no such share.
    [[nodiscard]] Candidates of_share(uint8_t share) const noexcept {
        return share < parts_.shares.size()
                   ? Candidates{share, {parts_.shares[share].primary, parts_.shares[share].heir}}
                   : Candidates{share};
    }
    // Of a packet from `client` to a VIP.
    [[nodiscard]] Candidates of_vip(const IpAddr& vip, const IpAddr& client) const noexcept {
        const bool is_spread = parts_.map.is_spread(vip);
        Candidates candidates =
            of_share(is_spread ? parts_.map.share_of_spread(vip, client) : parts_.map.share_of(vip));
        candidates.is_spread = is_spread;
        return candidates;
    }
    // Of a packet to `port` of a SNAT address: the gateway that opens flows with the port is the first.
    // Empty: the address is not one of a share.
    [[nodiscard]] std::optional<Candidates> of_snat(const IpAddr& address, L4Port port) const noexcept;

    // nat::SnatAddress::group of a new flow of a client of a spread VIP.
    [[nodiscard]] uint8_t snat_group(const IpAddr& vip, const IpAddr& client) const noexcept {
        const uint8_t share = parts_.map.share_of(vip, client);
        return share < parts_.snat_groups.size() ? parts_.snat_groups[share] : uint8_t{0};
    }

    [[nodiscard]] bool is_self(GatewayNumber gateway) const noexcept { return gateway == parts_.self; }
    // Null: there is no such gateway.
    [[nodiscard]] const Gateway* gateway(GatewayNumber number) const noexcept {
        return number < parts_.gateways.size() ? &parts_.gateways[number] : nullptr;
    }

 private:
    Parts parts_;
};

}  // namespace penstock::shares
