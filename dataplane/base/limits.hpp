// SPDX-License-Identifier: Apache-2.0
// All capacities of the product, each with its reason. A capacity that an operator can change is a default
// here and an option of penstockd. The others are fixed because they determine the layout of an array or a
// bit field.
#pragma once

#include <cstdint>

namespace penstock::limits {

// Maximum number of packets that a worker takes from a queue at once. If the tables exceed the cache, each
// pass over a burst waits for memory about once, whatever the length of the burst. Look-ups in bursts of 64
// took two thirds of the time of look-ups in bursts of 32 (docs/adr/0010). A burst of 256 would evict the
// first-level cache (grout measured 13 % less from 256 than from 64). A multiple of 32, the unit of the PMDs'
// vector paths.
inline constexpr uint32_t kBurstMax = 64;

// WorkerId has one byte, and one of its values means unset. The largest servers have fewer cores to spare
// than this.
inline constexpr uint32_t kWorkersMax = 64;

// DPDK's own RTE_MAX_ETHPORTS is 32 in Debian's build.
inline constexpr uint32_t kNicPortsMax = 16;

// Service ports at once. 10,000 Services are common; the largest clusters report 44,000.
inline constexpr uint32_t kServicesMax = 65'536;

// Endpoints at once, over all service ports: four times the 250,000 of a common large cluster.
inline constexpr uint32_t kBackendsMax = 1'048'576;

// Endpoints of one service port. The API allows 1,000 slices of 1,000 (GEN-009); this bound only stops
// runaway input.
inline constexpr uint32_t kBackendsPerServiceMax = 1'000'000;

// SNAT addresses of one gateway. The capacity is addresses x ports x endpoints, so a handful suffices. The
// index of a SNAT address is stored in one byte.
inline constexpr uint32_t kSnatAddressesMax = 64;
// Groups of them: those of the gateway, and those of each share (dataplane/shares/share_map.hpp).
inline constexpr uint32_t kSnatGroupsMax = 1 + 64;

// Next hops at once: the hosts of one or two racks and all endpoints on the link. The kernel's own gc_thresh3
// is 1,024 by default.
inline constexpr uint32_t kNeighboursMax = 16'384;

// Packets that wait for one next hop, and for all next hops, per worker. Linux holds up to 101 packets for
// each neighbour by default. A client that retransmits sends fewer, and a flood must not use up the mbufs.
inline constexpr uint32_t kPendingPerNextHop = 16;
inline constexpr uint32_t kPendingMax = 256;

// Resolutions of next hops that a worker requests per second, and at once, while no more packets can wait for
// a next hop (pipeline/state/unheld_asks.hpp). For endpoints and routers, which the configuration names,
// the limit is the number of packets that may wait. The limit of other hosts on a link is lower, because an
// attacker that forges addresses chooses them. Linux keeps an unanswered entry for 3 s in a table of 1,024
// (gc_thresh3), so this limit leaves most of that table to other neighbours.
inline constexpr uint32_t kUnheldAsksPerSecond = kPendingMax;
inline constexpr uint32_t kUnheldAsksPerSecondOfHosts = 64;

// Datagrams in fragments that are under way, per worker. A complete datagram leaves at once, so an entry
// stays only for a datagram that lost a fragment. 2,048 entries last for 5 s at 400 such losses per second.
// Memory: 440 kB.
inline constexpr uint32_t kFragmentedDatagramsMax = 2'048;

// Fragments that wait for the first fragment of their datagram: per worker, of one source, of one datagram. A
// datagram of 64 KB in IPv6's smallest packets has 54 fragments. Two whole datagrams per source and eight in
// total suffice for the reordering of a network, and a flood must not use up the mbufs.
inline constexpr uint32_t kFragmentsWaitingMax = 512;
inline constexpr uint32_t kFragmentsWaitingPerSource = 128;
inline constexpr uint32_t kFragmentsWaitingPerDatagram = 64;

// Handoff and punt rings, in packets. Each ring holds exactly this number, and drivers/eal/mempool.cpp
// provides a buffer for each packet. 2,048 packets are 32 bursts: 1.5 ms at 1.4 Mpps. A port has one punt
// ring for each PuntClass, and one of kPuntRing for the frames that Linux sends. Neighbours send a few frames
// a second each. The peer of a routing daemon sends a window's worth of updates at once.
inline constexpr uint32_t kHandoffRing = 2'048;
inline constexpr uint32_t kPuntLinkRing = 256;
inline constexpr uint32_t kPuntRoutingRing = 512;
inline constexpr uint32_t kPuntRing = 1'024;

// Connections of one worker; the default of --connections.
inline constexpr uint32_t kConnectionsDefault = 262'144;

// Flow records of one worker that wait for the thread that writes them, 2.5 MB. The thread looks every 10 ms,
// so a worker may open and end 800,000 connections per second.
inline constexpr uint32_t kFlowRecordsWaiting = 16'384;

// Session affinity entries (one per client) over all Services and workers; the default of --affinity-entries.
// The number is that of one worker's connections: it keeps the entries of about as many returning clients as
// there are connections at once. Memory: 9.6 MB.
inline constexpr uint32_t kAffinityEntriesDefault = 262'144;

// Refusals (RST, ABORT, port unreachable) that a worker may originate per second, and at once (REJ-003). The
// same limit, counted separately, applies to echo replies.
inline constexpr uint32_t kRejectsPerSecond = 1'000;
inline constexpr uint32_t kRejectsBurst = 1'000;

// ICMP errors of one kind (packet too big, or time exceeded) that a worker may originate per second, and at
// once, to one prefix of addresses (pipeline/state/prefix_limiter.hpp). A host needs one error for each
// path that is narrower than it assumed, so 100 serve a network of 256 hosts within seconds. The traffic
// reflected to the owner of a forged address stays below 1.1 Mbit/s (1,280 bytes each, the longest error of
// IPv6).
inline constexpr uint32_t kErrorsPerSecondToPrefix = 100;
inline constexpr uint32_t kErrorsBurstToPrefix = 100;
// Prefixes with a limit of their own; beyond this number, prefixes share a limit. The total is 25,600 errors
// per second. Building an error from its packet takes about 0.5 us, so a flood from all prefixes costs a
// worker 1.3 % of its time for each kind.
inline constexpr uint32_t kErrorPrefixes = 256;

// Connections (and orders) that a worker visits in one round while it ends flows of removed endpoints. Each
// visit waits for about one line of memory, and the waits of one slice overlap: 6 us, 10 us in one slice of a
// hundred, with 1,000,000 flows (scripts/bench orders). This equals the time of a burst, so a packet waits
// about one burst longer at most. 1,000,000 UDP flows are removed in one second.
inline constexpr uint32_t kFlowOrderSlice = 32;

// TCP connections that a worker resets per second, and at once. Each costs two probes, two answers and up to
// four RSTs: eight packets of the 1.4 million per second that a worker forwards. A drain that has only such
// flows thus uses at most about a quarter of the worker, and 1,000,000 flows take 20 s.
inline constexpr uint32_t kResetFlowsPerSecond = 50'000;
inline constexpr uint32_t kResetFlowsBurst = 1'000;

// Segments of connections under reset that a worker answers per second, and at once. The limit covers the
// answers to both probes, and the same number again for senders in full transfer, which have a window in
// flight already.
inline constexpr uint32_t kResetAnswersPerSecond = 200'000;
inline constexpr uint32_t kResetAnswersBurst = 8'000;

// Connections that a worker probes for liveness per second, and at once (pipeline/liveness.hpp). Consider a
// full table of 262,144 connections in which a FIN or a RST has been seen. All become idle within 110 s,
// 2,400 per second, and each is probed twice. Each probe costs four packets: 1.4 % of the packets that a
// worker forwards.
inline constexpr uint32_t kLivenessProbesPerSecond = 5'000;
inline constexpr uint32_t kLivenessProbesBurst = 500;

// Segments that a worker builds in one round: a RST for the other side of each packet of two bursts, and the
// probes of a few slices.
inline constexpr uint32_t kOwnSegmentsMax = 256;

// Buffers for these segments, over all workers: the number that can be in transmit queues and rings at once
// (kHandoffRing), for two ports.
inline constexpr uint32_t kOwnSegmentBuffers = 4'095;

// BFD sessions: two routers for each of kNicPortsMax links, by IPv4 and by IPv6.
inline constexpr uint32_t kBfdSessionsMax = 64;

}  // namespace penstock::limits
