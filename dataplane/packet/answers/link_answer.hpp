// SPDX-License-Identifier: Apache-2.0
// Frames about the Ethernet address of an IP address: the answer to a query or probe of a host on the link,
// the unsolicited announcement, and the probe that finds out whether a host of the link has an address.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "dataplane/base/ip.hpp"
#include "dataplane/packet/icmp.hpp"
#include "dataplane/packet/link_message.hpp"

namespace penstock::packet {

inline constexpr uint16_t kArpFrameBytes = sizeof(EthernetHeader) + sizeof(ArpPacket);
inline constexpr uint16_t kSolicitationFrameBytes =
    sizeof(EthernetHeader) + sizeof(Ipv6Header) + sizeof(NeighbourMessage);
inline constexpr uint16_t kAdvertisementFrameBytes =
    sizeof(EthernetHeader) + sizeof(Ipv6Header) + sizeof(NeighbourMessage) + sizeof(LinkAddressOption);

// Writes to `buffer` the frame that answers a Query or a Probe: `mac` has its target. NoBuffer if the answer
// does not fit; the buffer is then unchanged. `buffer` may be the one that the
// message was read from.
//   IPv4  an ARP reply to the sender's Ethernet address, also to a probe (RFC 5227, 2.1.1 and 2.6)
//   IPv6  an advertisement with the override flag: solicited to the sender, unsolicited to all nodes if the
//         message is a probe (RFC 4861, 7.2.4)
[[nodiscard]] AnswerResult make_link_answer(std::span<uint8_t> buffer, const LinkMessage& message,
                                            const MacAddr& mac) noexcept;

// Writes to `buffer` the frame that tells all hosts of the link that `mac` has `address` now, and returns its
// length. `buffer` has room for kAdvertisementFrameBytes.
//   IPv4  an ARP announcement (RFC 5227, 3)
//   IPv6  an unsolicited advertisement to all nodes with the override flag (RFC 4861, 7.2.6)
uint16_t make_link_announcement(std::span<uint8_t> buffer, const IpAddr& address,
                                const MacAddr& mac) noexcept;

// Writes to `buffer` the frame to which the host that has `address` answers, sent by `mac` without an address
// of its own, and returns its length. `buffer` has room for kSolicitationFrameBytes.
//   IPv4  an ARP probe (RFC 5227, 2.1.1)
//   IPv6  a solicitation from :: to the address's solicited-node group (RFC 4862, 5.4.2)
uint16_t make_link_probe(std::span<uint8_t> buffer, const IpAddr& address, const MacAddr& mac) noexcept;

}  // namespace penstock::packet
