// SPDX-License-Identifier: Apache-2.0
#include "drivers/host/twin_frames.hpp"

#include <linux/if_packet.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstddef>

namespace penstock::drivers {
namespace {

constexpr size_t kFrameMin = 60;

}  // namespace

std::vector<uint8_t> padded(std::vector<uint8_t> frame) {
    frame.resize(std::max(frame.size(), kFrameMin));
    return frame;
}

bool send_frame(int socket, const TwinsByIndex& twins, NicPortId port, ByteView frame) noexcept {
    const auto twin = std::ranges::find(twins, port, &TwinsByIndex::value_type::second);
    if (twin == twins.end()) {
        return false;
    }
    sockaddr_ll to{};
    to.sll_family = AF_PACKET;
    to.sll_ifindex = twin->first;
    return sendto(socket, frame.data(), frame.size(), 0, reinterpret_cast<const sockaddr*>(&to), sizeof to) >=
           0;
}

}  // namespace penstock::drivers
