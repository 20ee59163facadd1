// SPDX-License-Identifier: Apache-2.0
#include "drivers/host/vip_announcement.hpp"

#include <linux/if_packet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>

#include "dataplane/packet/answers/link_answer.hpp"

namespace penstock::drivers {
namespace {

constexpr size_t kFrameMin = 60;  // without the checksum that the NIC adds (IEEE 802.3)

}  // namespace

std::vector<uint8_t> announcement_of(const IpAddr& address, const MacAddr& mac) {
    std::vector<uint8_t> frame(packet::kAdvertisementFrameBytes);
    frame.resize(packet::make_link_announcement(frame, address, mac));
    frame.resize(std::max(frame.size(), kFrameMin));
    return frame;
}

Result<std::unique_ptr<VipAnnouncements>> VipAnnouncements::open(TwinsByIndex twins) {
    // Protocol 0: the socket only sends.
    const int link = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (link < 0) {
        return fail(Errc::PermissionDenied,
                    std::string("VIP presence: cannot open a packet socket: ") + std::strerror(errno));
    }
    return std::unique_ptr<VipAnnouncements>(new VipAnnouncements(std::move(twins), link));
}

VipAnnouncements::VipAnnouncements(TwinsByIndex twins, int link) : twins_(std::move(twins)), link_(link) {}

VipAnnouncements::~VipAnnouncements() {
    close(link_);
}

void VipAnnouncements::send(const route::LocalAddress& vip, const MacAddr& mac) noexcept {
    const auto twin = std::ranges::find(twins_, vip.port, &TwinsByIndex::value_type::second);
    if (twin == twins_.end()) {
        return;
    }
    const auto frame = announcement_of(vip.address, mac);
    sockaddr_ll to{};
    to.sll_family = AF_PACKET;
    to.sll_ifindex = twin->first;
    static_cast<void>(
        sendto(link_, frame.data(), frame.size(), 0, reinterpret_cast<const sockaddr*>(&to), sizeof(to)));
}

}  // namespace penstock::drivers
