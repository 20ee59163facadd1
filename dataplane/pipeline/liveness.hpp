// Whether a TCP connection lives that a FIN or a RST has passed in, and nothing since (docs/adr/0028). The gateway tracks no sequence
// numbers, so either may have been forged by a sender that knows the tuple. Before such a connection is forgotten for its silence, the
// sides are asked by probes, ACKs that are out of place (docs/adr/0017): a stack that has the connection answers by an ACK, one that has
// not by a RST. The answers are segments like any other: the table of transitions says what they show, and they are passed on, where they
// change nothing.
#pragma once

#include "dataplane/base/ids.hpp"

namespace penstock::pipeline {

struct WorkerContext;

// For the sweep, of a connection that a probe is due of (conn::Limits::is_probe_due). False: its own limit has passed already, or the limit
// of probes is reached; nothing has changed.
bool probe_for_life(WorkerContext& ctx, ConnectionIndex index) noexcept;

}  // namespace penstock::pipeline
