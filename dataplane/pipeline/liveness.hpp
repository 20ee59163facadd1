// SPDX-License-Identifier: Apache-2.0
// Checks whether a TCP connection is alive after a FIN or a RST that was followed by silence (docs/adr/0028).
// The gateway tracks no sequence numbers, so a sender with knowledge of the tuple may have forged either.
// Before such a connection is removed as idle, both sides are probed by unacceptable ACKs (docs/adr/0017): a
// stack that has the connection answers by an ACK, a stack that does not by a RST. The answers are ordinary
// segments. The transition table interprets them, and they are forwarded, which changes nothing for the other
// side.
#pragma once

#include "dataplane/base/ids.hpp"

namespace penstock::pipeline {

struct WorkerContext;

// For the sweep, for a connection with a probe due (conn::Limits::is_probe_due). Returns false if its own
// limit has already passed or the limit of probes is reached; nothing has changed then.
bool probe_for_life(WorkerContext& ctx, ConnectionIndex index) noexcept;

}  // namespace penstock::pipeline
