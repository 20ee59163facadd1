// SPDX-License-Identifier: Apache-2.0
// Verifies by the ACK numbers of a client's segments that the client receives what its endpoint sends
// (docs/adr/0028): at the end of a handshake, after a RST, and for a picked-up connection. The endpoint's
// sequence numbers are stored in the entry, in the space that holds the tags of an association. Segments of
// established connections are not processed here.
#pragma once

#include <array>

#include "dataplane/conn/tcp_state.hpp"
#include "dataplane/pipeline/state/burst.hpp"
#include "dataplane/pipeline/state/context.hpp"

namespace penstock::pipeline {

// Packet i is a TCP segment of connection found[i], not translated yet. `step` is its cell of the transition
// table, neither Invalid, Reset nor Reopen. Keeps or clears the endpoint's numbers as the cell requires, and
// returns the following state.
[[nodiscard]] PENSTOCK_NOINLINE conn::TcpState state_after(WorkerContext& ctx, const Burst& burst, uint32_t i,
                                                           conn::TcpStep step) noexcept;

// The tags of a connection picked up by packet i, a mid-stream segment of the client. They hold its ACK
// number: the endpoint's next sequence number if the client has received everything that the endpoint has
// sent. They verify nothing yet.
[[nodiscard]] std::array<uint32_t, 2> tags_of_picked_up(const Burst& burst, uint32_t i) noexcept;

}  // namespace penstock::pipeline
