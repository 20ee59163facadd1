// Whether the endpoint of a TCP connection has taken part in it since the handshake (docs/adr/0028). That it speaks need not show it: a
// stack that waits for the handshake's ACK answers what is out of its window, such as another SYN, by an ACK of its own (RFC 9293,
// 3.10.7.4), and who sends that SYN need not see anything of the connection. But such an ACK has the numbers of the SYN+ACK, because
// nothing has been sent since, and nothing taken. Both are kept where an association has its tags.
#pragma once

#include "dataplane/pipeline/burst.hpp"
#include "dataplane/pipeline/context.hpp"

namespace penstock::pipeline {

// Packet i is a TCP segment with SYN, of connection found[i], and not translated yet. Keeps the numbers of an endpoint's SYN+ACK.
PENSTOCK_NOINLINE void note_answer(WorkerContext& ctx, const Burst& burst, uint32_t i) noexcept;

// Whether packet i, a TCP segment of the endpoint's without SYN, says no more than the SYN+ACK that was noted last. Of a connection that
// was picked up, or that both sides have opened at once, none was: then what its endpoint says first is noted in that place.
[[nodiscard]] PENSTOCK_NOINLINE bool repeats_answer(WorkerContext& ctx, const Burst& burst, uint32_t i) noexcept;

}  // namespace penstock::pipeline
