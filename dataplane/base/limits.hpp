// Every capacity of the product, each with its reason. What an operator may change is a default here and an option of penstockd;
// the rest is fixed because an array or a bit field is laid out by it.
#pragma once

#include <cstdint>

namespace penstock::limits {

// Packets a worker takes from a queue at once. Beyond the cache a burst waits for memory about once in each pass, however long it is:
// look-ups in bursts of 64 took two thirds of what those in bursts of 32 did (docs/adr/0010). 256 would evict the first-level cache (grout
// measured 13 % less from 256 than from 64). A multiple of 32, which is what the PMDs' vector paths work in.
inline constexpr uint32_t kBurstMax = 64;

// One byte of WorkerId less the unset value; the largest servers have fewer cores than this to give.
inline constexpr uint32_t kWorkersMax = 64;

// DPDK's own RTE_MAX_ETHPORTS is 32 in Debian's build.
inline constexpr uint32_t kNicPortsMax = 16;

// Service ports at once. 10,000 Services are an ordinary day; the largest clusters report 44,000.
inline constexpr uint32_t kServicesMax = 65'536;

// Endpoints at once, over all service ports: four times the 250,000 of an ordinary large day.
inline constexpr uint32_t kBackendsMax = 1'048'576;

// Endpoints of one service port: 1,000 slices of 1,000 is what the API allows (GEN-009); this bound only stops runaway input.
inline constexpr uint32_t kBackendsPerServiceMax = 1'000'000;

// SNAT addresses of one gateway. Capacity is addresses x ports x endpoints, so a handful is plenty; the number is held in one byte.
inline constexpr uint32_t kSnatAddressesMax = 64;

// Next hops known at once. A rack or two of hosts and all endpoints on the link; the kernel's own gc_thresh3 is 1,024 by default.
inline constexpr uint32_t kNeighboursMax = 16'384;

// Packets that wait for one next hop, and for all of them, per worker. Linux keeps 101 packets' worth a neighbour by default; a client that
// retransmits sends fewer, and a flood must not eat the mbufs.
inline constexpr uint32_t kPendingPerNextHop = 16;
inline constexpr uint32_t kPendingMax = 256;

// Next hops that a worker has resolved in a second, and at once, while nothing more can wait for one (pipeline/answers/unheld_asks.hpp): endpoints
// and routers, which the configuration names, as many as may wait; and other hosts on a link. Whoever forges addresses chooses the latter.
// Linux keeps an unanswered one for 3 s in a table of 1,024 (gc_thresh3), so the limit leaves most of that table to others.
inline constexpr uint32_t kUnheldAsksPerSecond = kPendingMax;
inline constexpr uint32_t kUnheldAsksPerSecondOfHosts = 64;

// Datagrams whose fragments are under way, per worker: what is complete leaves at once, so this is what loses a fragment in 5 s at 400 such
// losses a second. 440 kB.
inline constexpr uint32_t kFragmentedDatagramsMax = 2'048;

// Fragments that wait for the first one of their datagram, per worker, of one source and of one datagram: 64 KB in IPv6's smallest packets
// are 54. Two whole datagrams of a source, and eight in all, are enough for what a network reorders, and a flood must not eat the mbufs.
inline constexpr uint32_t kFragmentsWaitingMax = 512;
inline constexpr uint32_t kFragmentsWaitingPerSource = 128;
inline constexpr uint32_t kFragmentsWaitingPerDatagram = 64;

// Handoff and punt rings, in packets: each ring holds exactly so many, and drivers/eal/mempool.cpp has a buffer for each. 2,048 is 32 bursts:
// 1.5 ms at 1.4 Mpps. A port has a punt ring for each PuntClass, and one of kPuntRing for what Linux sends. Neighbours send a few frames a
// second each; a routing daemon's peer sends a window's worth of updates at once.
inline constexpr uint32_t kHandoffRing = 2'048;
inline constexpr uint32_t kPuntLinkRing = 256;
inline constexpr uint32_t kPuntRoutingRing = 512;
inline constexpr uint32_t kPuntRing = 1'024;

// Connections of one worker unless --connections says otherwise.
inline constexpr uint32_t kConnectionsDefault = 262'144;

// Clients that session affinity remembers, over all Services and workers, unless --affinity-entries says otherwise. As many as one worker's
// connections: a client that comes back is worth remembering for about as many as are there at once. 9.6 MB.
inline constexpr uint32_t kAffinityEntriesDefault = 262'144;

// Refusals (RST, ABORT, port unreachable) that a worker may originate a second, and at once (REJ-003); echo replies likewise.
inline constexpr uint32_t kRejectsPerSecond = 1'000;
inline constexpr uint32_t kRejectsBurst = 1'000;

// ICMP errors of one sort (packet too big, or time exceeded) that a worker may originate a second, and at once, to one prefix of addresses
// (pipeline/answers/prefix_limiter.hpp). A host needs one error for each path that is narrower than it thought, so 100 serve a network of 256 hosts
// within seconds, and what is reflected at the owner of a forged address stays below 1.1 Mbit/s (1,280 bytes each, IPv6's longest error).
inline constexpr uint32_t kErrorsPerSecondToPrefix = 100;
inline constexpr uint32_t kErrorsBurstToPrefix = 100;
// Prefixes that are told apart; more share a limit. All together are 25,600 a second. An error is made from its packet in about 0.5 us, so
// a flood from everywhere costs a worker 1.3 % of its time for either sort.
inline constexpr uint32_t kErrorPrefixes = 256;

// Connections (and orders) that a worker looks at in one round while flows of gone endpoints are ended. Each waits for about one line of
// memory, and those of a slice wait side by side: 6 us, 10 in one slice of a hundred, among 1,000,000 flows (scripts/bench orders). That is
// what a burst takes, so a packet waits about one burst longer at most; 1,000,000 UDP flows are gone in a second.
inline constexpr uint32_t kFlowOrderSlice = 32;

// TCP connections a worker resets a second, and at once. Each costs two probes, two answers and up to four RSTs: eight packets of the
// 1.4 million that a worker moves, so a quarter of it is left to a drain that has nothing but such flows, and 1,000,000 take 20 s.
inline constexpr uint32_t kResetFlowsPerSecond = 50'000;
inline constexpr uint32_t kResetFlowsBurst = 1'000;

// Segments of connections under reset that a worker answers a second, and at once: both probes' answers, and as much again for senders in
// full transfer, whose window is under way already.
inline constexpr uint32_t kResetAnswersPerSecond = 200'000;
inline constexpr uint32_t kResetAnswersBurst = 8'000;

// Connections that a worker probes for life a second, and at once (pipeline/liveness.hpp). A full table of connections that a FIN or a RST
// has passed in becomes idle at 262,144 in 110 s, 2,400 a second, and each is probed twice. Four packets each: 1.4 % of what a worker
// moves.
inline constexpr uint32_t kLivenessProbesPerSecond = 5'000;
inline constexpr uint32_t kLivenessProbesBurst = 500;

// Segments that a worker makes up in one round: a RST for the other side of each packet of two bursts, and the probes of some slices.
inline constexpr uint32_t kOwnSegmentsMax = 256;

// Buffers for those, over all workers: what may lie in transmit queues and rings at once (kHandoffRing), for two ports.
inline constexpr uint32_t kOwnSegmentBuffers = 4'095;

}  // namespace penstock::limits
