// SPDX-License-Identifier: Apache-2.0
// ARP and neighbour discovery as hosts of a link send them, field by field, without code of dataplane/packet.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "dataplane/base/ip.hpp"
#include "tests/support/packet_builder.hpp"

namespace penstock::test {

inline void append_mac(std::vector<uint8_t>& bytes, const MacAddr& mac) {
    bytes.insert(bytes.end(), mac.bytes.begin(), mac.bytes.end());
}

struct ArpFrame {
    uint16_t operation = 1;  // request
    MacAddr sender_mac{{2, 0, 0, 0, 1, 2}};
    IpAddr sender, target;
    MacAddr target_mac{};
    MacAddr to{{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}};
    uint16_t hardware = 1, protocol = 0x0800;
    uint8_t hardware_bytes = 6, protocol_bytes = 4;

    [[nodiscard]] std::vector<uint8_t> build() const {
        std::vector<uint8_t> bytes{static_cast<uint8_t>(hardware >> 8),
                                   static_cast<uint8_t>(hardware),
                                   static_cast<uint8_t>(protocol >> 8),
                                   static_cast<uint8_t>(protocol),
                                   hardware_bytes,
                                   protocol_bytes,
                                   static_cast<uint8_t>(operation >> 8),
                                   static_cast<uint8_t>(operation)};
        append_mac(bytes, sender_mac);
        bytes.insert(bytes.end(), sender.bytes().begin() + 12, sender.bytes().end());
        append_mac(bytes, target_mac);
        bytes.insert(bytes.end(), target.bytes().begin() + 12, target.bytes().end());
        return eth()
            .from_mac(sender_mac.to_string())
            .to_mac(to.to_string())
            .ether_type(0x0806)
            .payload(bytes)
            .pad_to(60)
            .build();
    }
};

// A solicitation or advertisement. The checksum is right; `more` follows the options.
struct NeighbourFrame {
    uint8_t type = 135;  // solicitation
    MacAddr mac{{2, 0, 0, 0, 1, 2}};
    std::string source, destination;
    IpAddr target;
    std::optional<MacAddr> option = {};  // its type is that of the message
    MacAddr to{{0x33, 0x33, 0xff, 0, 0, 0x80}};
    uint8_t hop_limit = 255, code = 0;
    uint32_t flags = 0;
    std::vector<uint8_t> more = {};

    [[nodiscard]] PacketBuilder packet() const {
        std::vector<uint8_t> bytes(target.bytes().begin(), target.bytes().end());
        if (option) {
            bytes.push_back(type == 135 ? 1 : 2);
            bytes.push_back(1);
            append_mac(bytes, *option);
        }
        bytes.insert(bytes.end(), more.begin(), more.end());
        return eth()
            .from_mac(mac.to_string())
            .to_mac(to.to_string())
            .ipv6(source, destination)
            .hop_limit(hop_limit)
            .icmp(type, code, flags)
            .payload(bytes);
    }
    [[nodiscard]] std::vector<uint8_t> build() const { return packet().build(); }
};

}  // namespace penstock::test
