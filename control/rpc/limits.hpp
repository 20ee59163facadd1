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

// TCP connections that are open at once, idle ones included, and those of one source (an IPv4 address or an IPv6 /64). Clients are one
// state stream for each control plane, and administrators. A connection takes two descriptors (tcp_acceptor.hpp), and no thread.
inline constexpr unsigned kConnectionsMax = 256;
inline constexpr unsigned kConnectionsPerSourceMax = 32;
// Of all, those that only loopback may have. Unix sockets, which have mode 0660, are not limited.
inline constexpr unsigned kLoopbackReserve = 16;
// All of 127.0.0.0/8 and ::1 together. A local process has as many source addresses as it wants.
inline constexpr unsigned kLoopbackMax = 64;
static_assert(kLoopbackReserve < kConnectionsMax &&
              kConnectionsPerSourceMax <= kConnectionsMax - kLoopbackReserve);
static_assert(kLoopbackReserve <= kLoopbackMax && kLoopbackMax < kConnectionsMax);

}  // namespace penstock::rpc
