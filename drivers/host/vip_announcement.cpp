// SPDX-License-Identifier: Apache-2.0
#include "drivers/host/vip_announcement.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "dataplane/packet/answers/link_answer.hpp"
#include "drivers/host/twin_frames.hpp"

namespace penstock::drivers {

std::vector<uint8_t> announcement_of(const IpAddr& address, const MacAddr& mac) {
    std::vector<uint8_t> frame(packet::kAdvertisementFrameBytes);
    frame.resize(packet::make_link_announcement(frame, address, mac));
    return padded(std::move(frame));
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
    send_frame(link_, twins_, vip.port, announcement_of(vip.address, mac));
}

}  // namespace penstock::drivers
