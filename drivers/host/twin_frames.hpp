// SPDX-License-Identifier: Apache-2.0
// Frames of the control plane that leave through a twin, so that a worker sends them by the twin's port.
#pragma once

#include <cstdint>
#include <vector>

#include "dataplane/base/bytes.hpp"
#include "dataplane/base/ids.hpp"
#include "drivers/host/netlink_messages.hpp"

namespace penstock::drivers {

// The frame with the least length of Ethernet, without the checksum that the NIC adds (IEEE 802.3).
[[nodiscard]] std::vector<uint8_t> padded(std::vector<uint8_t> frame);

// Sends it through the twin of the port by an AF_PACKET socket. False: there is no such twin, or the frame
// could not be sent.
bool send_frame(int socket, const TwinsByIndex& twins, NicPortId port, ByteView frame) noexcept;

}  // namespace penstock::drivers
