// SPDX-License-Identifier: Apache-2.0
// Resource limits for gRPC clients.
#pragma once

namespace penstock::rpc {

// Each status or debug call occupies a thread while it runs, and a slow reader can prolong a listing
// indefinitely. Read-only clients must not be able to exhaust the threads of the process that forwards
// packets by opening thousands of listings. Calls beyond this limit get RESOURCE_EXHAUSTED. State streams
// occupy no thread.
inline constexpr int kThreadsMax = 64;
// Clients without the right to configure get at most half of the threads, so that administrators are always
// served.
inline constexpr int kReadersMax = kThreadsMax / 2;

// Streams with copies of connections (GatewayPeers). Each occupies a thread as long as the other gateway
// runs. A plan with a few gateways has as many streams as other gateways; the threads that are left serve
// calls of administrators.
inline constexpr int kPeerStreamsMax = kThreadsMax / 4;

// A TCP client is disconnected if it has not finished its handshake within this time, or has had no call for
// this time. Idle connections use up descriptors, which probes and the state file need too.
inline constexpr int kHandshakeMs = 10'000;
inline constexpr int kIdleMs = 300'000;

// Limits of open TCP connections, idle ones included: in total, and per source (an IPv4 address or an IPv6
// /64). Expected are one state stream per control plane, and administrators. A connection takes two
// descriptors (tcp_acceptor.hpp) and no thread.
inline constexpr unsigned kConnectionsMax = 256;
inline constexpr unsigned kConnectionsPerSourceMax = 32;
// Part of the total reserved for loopback. Unix sockets, which have mode 0660, are not limited.
inline constexpr unsigned kLoopbackReserve = 16;
// Limit for all of 127.0.0.0/8 and ::1 together. A local process can use any number of source addresses.
inline constexpr unsigned kLoopbackMax = 64;
static_assert(kLoopbackReserve < kConnectionsMax &&
              kConnectionsPerSourceMax <= kConnectionsMax - kLoopbackReserve);
static_assert(kLoopbackReserve <= kLoopbackMax && kLoopbackMax < kConnectionsMax);

// Limits of a packet capture. The least snap length has the Ethernet and IPv4 headers.
inline constexpr unsigned kCaptureSecondsMax = 3'600;
inline constexpr unsigned kSnapMin = 34;
inline constexpr unsigned kSnapMax = 16'384;

}  // namespace penstock::rpc
