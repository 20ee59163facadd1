// SPDX-License-Identifier: Apache-2.0
#include "drivers/host/link_probes.hpp"

#include <arpa/inet.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "dataplane/base/protocol.hpp"
#include "dataplane/packet/answers/link_answer.hpp"
#include "dataplane/packet/parse.hpp"
#include "drivers/host/twin_frames.hpp"

namespace penstock::drivers {
namespace {

constexpr size_t kFrameMax = 256;  // of a message about an address

template <size_t N>
bool accept_only(int socket, std::array<sock_filter, N> program) {
    const sock_fprog filter{.len = program.size(), .filter = program.data()};
    return setsockopt(socket, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter) == 0;
}

// Of ARP, replies and announcements; offsets are those of the frame. Other hosts' requests would fill the
// buffer.
bool accept_arp_claims_only(int socket) {
    return accept_only(socket, std::array<sock_filter, 9>{{
                                   BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 20),  // operation
                                   BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, packet::ArpPacket::kReply, 5, 0),
                                   BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, packet::ArpPacket::kRequest, 0, 5),
                                   BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 28),  // the sender's address
                                   BPF_STMT(BPF_MISC | BPF_TAX, 0),
                                   BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 38),  // the target's
                                   BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_X, 0, 0, 1),
                                   BPF_STMT(BPF_RET | BPF_K, kFrameMax),
                                   BPF_STMT(BPF_RET | BPF_K, 0),
                               }});
}

// Of IPv6, neighbour advertisements.
bool accept_advertisements_only(int socket) {
    return accept_only(
        socket, std::array<sock_filter, 6>{{
                    BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 20),  // next header
                    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kProtoIcmpv6, 0, 3),
                    BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 54),  // type
                    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, packet::NeighbourMessage::kAdvertisement, 0, 1),
                    BPF_STMT(BPF_RET | BPF_K, kFrameMax),
                    BPF_STMT(BPF_RET | BPF_K, 0),
                }});
}

// Protocol 0 receives nothing, so the filter is there before the first frame.
int open_socket(uint16_t protocol) {
    const int link = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (link < 0) {
        return -1;
    }
    sockaddr_ll any{};
    any.sll_family = AF_PACKET;
    any.sll_protocol = htons(protocol);
    if (!(protocol == ETH_P_ARP ? accept_arp_claims_only(link) : accept_advertisements_only(link)) ||
        bind(link, reinterpret_cast<const sockaddr*>(&any), sizeof any) != 0) {
        const int reason = errno;
        close(link);
        errno = reason;
        return -1;
    }
    return link;
}

}  // namespace

std::vector<uint8_t> probe_of(const IpAddr& address, const MacAddr& mac) {
    std::vector<uint8_t> frame(packet::kSolicitationFrameBytes);
    frame.resize(packet::make_link_probe(frame, address, mac));
    return padded(std::move(frame));
}

std::optional<AddressClaim> claim_in(ByteView frame) {
    packet::Parsed parsed;
    if (!packet::parse(frame, parsed)) {
        return std::nullopt;
    }
    const packet::LinkMessage message = packet::read_link_message(frame, parsed);
    return message.kind == packet::LinkMessage::Kind::Claim
               ? std::optional(AddressClaim{message.target, message.sender_mac})
               : std::nullopt;
}

Result<std::unique_ptr<LinkProbes>> LinkProbes::open(TwinsByIndex twins) {
    const int arp = open_socket(ETH_P_ARP);
    const int nd = arp < 0 ? -1 : open_socket(ETH_P_IPV6);
    if (nd < 0) {
        const std::string reason = std::strerror(errno);
        if (arp >= 0) {
            close(arp);
        }
        return fail(Errc::PermissionDenied,
                    "VIP presence: cannot open a packet socket for probes: " + reason);
    }
    return std::unique_ptr<LinkProbes>(new LinkProbes(std::move(twins), arp, nd));
}

LinkProbes::LinkProbes(TwinsByIndex twins, int arp, int nd) : twins_(std::move(twins)), arp_(arp), nd_(nd) {}

LinkProbes::~LinkProbes() {
    close(arp_);
    close(nd_);
}

bool LinkProbes::send(const route::LinkVip& vip, const MacAddr& mac) noexcept {
    return send_frame(arp_, twins_, vip.port, probe_of(vip.address, mac));
}

void LinkProbes::receive(const std::function<void(NicPortId port, const AddressClaim& claim)>& take) {
    for (const int link : {arp_, nd_}) {
        for (int frames = 0; frames < kPerCall; ++frames) {
            std::array<uint8_t, kFrameMax> frame;
            sockaddr_ll from{};
            socklen_t from_bytes = sizeof from;
            const ssize_t bytes = recvfrom(link, frame.data(), frame.size(), 0,
                                           reinterpret_cast<sockaddr*>(&from), &from_bytes);
            if (bytes < 0) {
                break;
            }
            const auto twin = twins_.find(from.sll_ifindex);
            if (twin == twins_.end()) {
                continue;
            }
            if (const auto claim = claim_in(ByteView(frame.data(), static_cast<size_t>(bytes)))) {
                take(twin->second, *claim);
            }
        }
    }
}

}  // namespace penstock::drivers
