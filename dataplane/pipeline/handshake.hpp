// Verifies that a client receives what its endpoint sends, by the ACK numbers of its segments (docs/adr/0028): at the end of a handshake,
// behind a RST, and of a connection that was picked up. The endpoint's numbers are kept in the entry, where an association has its tags.
// Established segments do not come here.
#pragma once

#include <array>

#include "dataplane/conn/tcp_state.hpp"
#include "dataplane/pipeline/state/burst.hpp"
#include "dataplane/pipeline/state/context.hpp"

namespace penstock::pipeline {

// Packet i is a TCP segment of connection found[i], not translated yet, and `step` is its cell of the table of transitions, neither
// Invalid, Reset nor Reopen. Keeps or forgets the endpoint's numbers as the cell demands, and returns the state that follows.
[[nodiscard]] PENSTOCK_NOINLINE conn::TcpState state_after(WorkerContext& ctx, const Burst& burst, uint32_t i,
                                                           conn::TcpStep step) noexcept;

// The tags of a connection that packet i, a client's segment, shows in mid-stream: its ACK number, where the endpoint will continue if the
// client has received all that the endpoint has sent. It allows nothing yet.
[[nodiscard]] std::array<uint32_t, 2> tags_of_picked_up(const Burst& burst, uint32_t i) noexcept;

}  // namespace penstock::pipeline
