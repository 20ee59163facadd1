// How much of a program its gRPC clients can take.
#pragma once

namespace penstock::rpc {

// Each status or debug call has a thread while it runs, and a listing runs as long as its reader likes. Whoever may only read must not be
// able to take the threads of the process that moves packets by opening thousands of listings: calls beyond this are RESOURCE_EXHAUSTED.
// State streams take no thread.
inline constexpr int kThreadsMax = 64;
// Of these, clients without the right to configure get at most half, so that an administrator is always answered.
inline constexpr int kReadersMax = kThreadsMax / 2;

// A TCP client that has not finished its handshake by then is cut off, and so is one that has had no call for so long: idle connections
// use up descriptors, which probes and the state file need too.
inline constexpr int kHandshakeMs = 10'000;
inline constexpr int kIdleMs = 300'000;

}  // namespace penstock::rpc
