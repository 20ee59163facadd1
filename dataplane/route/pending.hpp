// SPDX-License-Identifier: Apache-2.0
// The packets of one worker that wait for the resolution of a next hop. Handles are opaque (an mbuf in a
// worker, a number in a test).
//
//   buckets --> hop (egress, address) --> hop ...     hash chains
//                |  oldest          newest
//                '-> packet -> packet -> packet       by hop: sent in order of arrival
//   oldest ---------> packet <-> packet <-> packet    over all hops: expiry checks only the front
//
// Waiting packets are never displaced. If the limit of a next hop or the total limit is reached, the new
// packet is refused and the caller drops it (PendingFull). A flood of packets to unused addresses therefore
// cannot displace packets that wait for an existing next hop; it occupies room for kHoldMs at a time. All
// packets wait equally long, so they expire oldest first. The memory is part of the object and bounded;
// nothing is allocated. Each call costs O(1) per packet. take_ready and ask_again visit each waiting next hop
// once.
#pragma once

#include <array>
#include <cstdint>
#include <type_traits>

#include "dataplane/base/check.hpp"
#include "dataplane/base/hash.hpp"
#include "dataplane/base/ids.hpp"
#include "dataplane/base/ip.hpp"
#include "dataplane/base/limits.hpp"
#include "dataplane/base/time.hpp"
#include "dataplane/route/route_table.hpp"

namespace penstock::route {

// Linux sends its first ARP request at once and the next one a second later (retrans_time_ms). An answer
// later than that is unlikely to be of use, and a client's retransmission brings a new packet anyway (RFC
// 6298 starts at 1 s).
inline constexpr uint64_t kHoldMs = 1'000;
// A request to the kernel may be lost (a full queue, a neighbour table at its limit). Repeating it is cheap,
// because the kernel merges it with the resolution in progress.
inline constexpr uint64_t kAskAgainMs = 200;

enum class HoldResult : uint8_t {
    Held,       // waits with others; the resolution has been requested
    HeldFirst,  // the first packet for this next hop: the caller must request the resolution
    Full,       // refused: the caller drops it
    // Refused, and no packet waits for this next hop, so no resolution has been requested.
    FullFirst,
};

template <typename Handle>
class PendingPackets {
    static_assert(std::is_trivially_copyable_v<Handle>);

 public:
    // The hash key is secret, because clients choose the addresses on a link.
    explicit PendingPackets(TscRate rate, const HashKey& secret = HashKey::random()) noexcept
        : hold_time_(rate.milliseconds(kHoldMs)),
          ask_again_after_(rate.milliseconds(kAskAgainMs)),
          secret_(secret) {
        buckets_.fill(kEnd);
        for (uint32_t i = 0; i < kPackets; ++i) {
            packets_[i].hop_next = static_cast<uint16_t>(i + 1U < kPackets ? i + 1U : kEnd);
            hops_[i].bucket_next = static_cast<uint16_t>(i + 1U < kPackets ? i + 1U : kEnd);
        }
    }
    PendingPackets(const PendingPackets&) = delete;
    PendingPackets& operator=(const PendingPackets&) = delete;

    // Takes ownership of `handle` until take_ready or expire returns it, unless the result is Full or
    // FullFirst.
    HoldResult hold(Handle handle, NicPortId egress, const IpAddr& address, TscTime now) noexcept {
        const size_t bucket = bucket_of(egress, address);
        uint16_t at = buckets_[bucket];
        while (at != kEnd && !(hops_[at].egress == egress && hops_[at].address == address)) {
            at = hops_[at].bucket_next;
        }
        const bool is_first = at == kEnd;
        if (free_packet_ == kEnd) {
            return is_first ? HoldResult::FullFirst : HoldResult::Full;
        }
        if (is_first) {
            at = open_hop(bucket, egress, address, now);
        } else if (hops_[at].count == limits::kPendingPerNextHop) {
            return HoldResult::Full;
        }
        append(at, handle, now);
        return is_first ? HoldResult::HeldFirst : HoldResult::Held;
    }

    // Calls `send(handle, const NextHop&)` for each packet with a next hop that is usable according to
    // `routes`, in order of arrival for each next hop. Call for each new snapshot.
    template <typename Send>
    void take_ready(const RouteTable& routes, Send&& send) noexcept {
        for_each_hop([&](uint16_t at) {
            const WaitingHop& hop = hops_[at];
            const Neighbour* neighbour = routes.neighbour(hop.egress, hop.address);
            if (neighbour == nullptr || !neighbour->is_usable()) {
                return;
            }
            const NextHop next_hop{.egress = hop.egress, .address = hop.address, .neighbour = neighbour};
            for (uint32_t left = hop.count; left > 0; --left) {
                send(pop_oldest_of(at), next_hop);
            }
        });
    }

    // Calls `drop(handle)` for each packet that has waited for kHoldMs or longer (NextHopUnresolved), oldest
    // first.
    template <typename Drop>
    void expire(TscTime now, Drop&& drop) noexcept {
        while (oldest_ != kEnd && ticks_between(packets_[oldest_].since, now) >= hold_time_) {
            drop(pop_oldest_of(packets_[oldest_].hop));
        }
    }

    // Calls `ask(egress, address)` for each next hop with waiting packets if its last request is kAskAgainMs
    // old.
    template <typename Ask>
    void ask_again(TscTime now, Ask&& ask) noexcept {
        for_each_hop([&](uint16_t at) {
            WaitingHop& hop = hops_[at];
            if (ticks_between(hop.asked, now) >= ask_again_after_) {
                hop.asked = now;
                ask(hop.egress, hop.address);
            }
        });
    }

    // Calls `drop(handle)` for all packets: the worker stops.
    template <typename Drop>
    void clear(Drop&& drop) noexcept {
        while (oldest_ != kEnd) {
            drop(pop_oldest_of(packets_[oldest_].hop));
        }
    }

    [[nodiscard]] uint32_t size() const noexcept { return size_; }
    [[nodiscard]] bool empty() const noexcept { return size_ == 0; }

 private:
    static constexpr uint16_t kEnd = 0xffff;
    static constexpr uint32_t kPackets = limits::kPendingMax;
    static constexpr size_t kBuckets = 512;  // two for each next hop with waiting packets
    static_assert(kPackets < kEnd && kBuckets >= 2 * kPackets && (kBuckets & (kBuckets - 1)) == 0);

    struct Packet {
        Handle handle{};
        TscTime since;
        uint16_t hop = kEnd;
        uint16_t hop_next = kEnd;  // the next younger packet of its hop; or the next free packet
        uint16_t older = kEnd;
        uint16_t younger = kEnd;
    };
    // As many as packets: each packet may wait for a different next hop.
    struct WaitingHop {
        IpAddr address;
        TscTime asked;
        NicPortId egress;
        uint16_t count = 0;  // 0: free
        uint16_t first = kEnd;
        uint16_t last = kEnd;
        uint16_t bucket_next = kEnd;  // or the next free hop
    };

    size_t bucket_of(NicPortId egress, const IpAddr& address) const noexcept {
        return siphash13<3>(secret_, {load<uint64_t>(address.bytes().data()),
                                      load<uint64_t>(address.bytes().data() + 8), uint64_t{egress.value}}) &
               (kBuckets - 1);
    }

    uint16_t open_hop(size_t bucket, NicPortId egress, const IpAddr& address, TscTime now) noexcept {
        PENSTOCK_ASSERT(free_hop_ != kEnd);  // a free packet implies a free hop
        const uint16_t at = free_hop_;
        free_hop_ = hops_[at].bucket_next;
        hops_[at] = {.address = address, .asked = now, .egress = egress, .bucket_next = buckets_[bucket]};
        buckets_[bucket] = at;
        return at;
    }

    void close_hop(uint16_t at) noexcept {
        uint16_t* link = &buckets_[bucket_of(hops_[at].egress, hops_[at].address)];
        while (*link != at) {
            link = &hops_[*link].bucket_next;
        }
        *link = hops_[at].bucket_next;
        hops_[at].bucket_next = free_hop_;
        free_hop_ = at;
    }

    void append(uint16_t at, Handle handle, TscTime now) noexcept {
        const uint16_t index = free_packet_;
        free_packet_ = packets_[index].hop_next;
        packets_[index] = {.handle = handle, .since = now, .hop = at, .older = newest_};
        (newest_ == kEnd ? oldest_ : packets_[newest_].younger) = index;
        newest_ = index;

        WaitingHop& hop = hops_[at];
        (hop.count == 0 ? hop.first : packets_[hop.last].hop_next) = index;
        hop.last = index;
        ++hop.count;
        ++size_;
    }

    // The hop is closed with its last packet. The packet is freed before the handle is used, so a callback
    // may call hold().
    Handle pop_oldest_of(uint16_t at) noexcept {
        WaitingHop& hop = hops_[at];
        const uint16_t index = hop.first;
        Packet& packet = packets_[index];
        const Handle handle = packet.handle;
        hop.first = packet.hop_next;
        (packet.older == kEnd ? oldest_ : packets_[packet.older].younger) = packet.younger;
        (packet.younger == kEnd ? newest_ : packets_[packet.younger].older) = packet.older;
        packet.hop_next = free_packet_;
        free_packet_ = index;
        --size_;
        if (--hop.count == 0) {
            close_hop(at);
        }
        return handle;
    }

    // Visits hops by iterating over the packets from old to new and taking each hop at its first packet.
    template <typename Visit>
    void for_each_hop(Visit&& visit) noexcept {
        uint16_t waiting[kPackets];
        uint32_t count = 0;
        for (uint16_t i = oldest_; i != kEnd; i = packets_[i].younger) {
            if (hops_[packets_[i].hop].first == i) {
                waiting[count++] = packets_[i].hop;
            }
        }
        for (uint32_t i = 0; i < count; ++i) {
            visit(waiting[i]);
        }
    }

    TscTicks hold_time_;
    TscTicks ask_again_after_;
    HashKey secret_;
    uint32_t size_ = 0;
    uint16_t oldest_ = kEnd;
    uint16_t newest_ = kEnd;
    uint16_t free_packet_ = 0;
    uint16_t free_hop_ = 0;
    std::array<uint16_t, kBuckets> buckets_;
    std::array<Packet, kPackets> packets_;
    std::array<WaitingHop, kPackets> hops_;
};

}  // namespace penstock::route
