// SPDX-License-Identifier: Apache-2.0
// net_af_packet: a ring of fixed slots shared with the kernel (PACKET_MMAP, TPACKET_V2), one for each
// direction and queue pair.
//
//   slot:  | tpacket2_hdr, sockaddr_ll, padding: 66 | Ethernet and IP ... |  framesz bytes, a power of two
//   block: | slot | slot | ...                                            |  blocksz bytes, contiguous pages
//
// The PMD assumes slot i at i x framesz, so slots must fill a block without a remainder, and the kernel
// requires framecnt = blocks x (blocksz / framesz). The kernel truncates a frame that exceeds its slot
// *silently*, so framesz must follow the MTU. Fragments are not visible here at all. The PMD puts its sockets
// into a fanout group that reassembles IPv4 fragments first, and the reassembled datagram is truncated to the
// slot as well. The parser drops it as shorter than its IP length.
#include <algorithm>
#include <bit>

#include "drivers/pmd/completion.hpp"

namespace penstock::drivers {
namespace {

// Offset of the frame in a received slot: TPACKET_ALIGN(TPACKET2_HDRLEN 52 + 16) - 14 for Ethernet
// (net/packet/af_packet.c, tpacket_rcv). So a 2,048-byte slot holds 1,982 bytes, and a larger frame is
// truncated to them.
constexpr uint32_t kSlotHeader = 66;
// The PMD subtracts this from the slot size and requires the rest as room in an mbuf: TPACKET2_HDRLEN 52 -
// sizeof(sockaddr_ll) 20.
constexpr uint32_t kMbufLess = 32;

constexpr uint32_t kPage = 4096;
constexpr uint32_t kSlotMin = 2048;
// Fewer, larger allocations than pages, of an order (4) that the page allocator can still provide on a busy
// host.
constexpr uint32_t kBlock = 65'536;
// Slots of one ring. A worker that shares its CPU may be descheduled for a time slice, about 4 ms. 2,048
// slots hold that at 500 kpps.
constexpr uint32_t kSlotsMax = 2048;
// Limit for a ring of large slots (unswappable memory, twice for each queue pair).
constexpr uint32_t kRingBytesMax = 8u << 20;
static_assert(kSlotMin * kSlotsMax <= kRingBytesMax);

// RTE_PMD_AF_PACKET_MAX_RINGS.
constexpr unsigned kQueuePairsMax = 16;

}  // namespace

Result<CompletionResult> complete_af_packet(DeviceString& device, const CompletionFacts& facts) {
    device.complete("qpairs", std::to_string(std::min(facts.queues, kQueuePairsMax)));

    const uint32_t needed = kSlotHeader + frame_bytes(facts.mtu);
    PENSTOCK_TRY(const auto slot,
                 number_argument(device, "framesz", std::max(kSlotMin, std::bit_ceil(needed))));
    if (slot < needed) {
        return fail(Errc::InvalidArgument, device.name + ": framesz=" + std::to_string(slot) +
                                               " cuts frames of MTU " + std::to_string(facts.mtu) +
                                               ", which need " + std::to_string(needed));
    }
    PENSTOCK_TRY(const auto block, number_argument(device, "blocksz", std::max(kBlock, slot)));
    if (block % slot != 0 || block % kPage != 0) {
        return fail(Errc::InvalidArgument, device.name + ": blocksz=" + std::to_string(block) +
                                               " is not a multiple of both framesz=" + std::to_string(slot) +
                                               " and the page size " + std::to_string(kPage));
    }
    const uint32_t per_block = block / slot;
    const uint32_t default_slots =
        std::max(per_block, std::min(kSlotsMax, kRingBytesMax / slot) / per_block * per_block);
    PENSTOCK_TRY(const auto slots, number_argument(device, "framecnt", default_slots));
    if (slots % per_block != 0) {
        return fail(Errc::InvalidArgument, device.name + ": framecnt=" + std::to_string(slots) +
                                               " is not a multiple of blocksz / framesz, " +
                                               std::to_string(per_block));
    }
    device.complete("framesz", std::to_string(slot));
    device.complete("blocksz", std::to_string(block));
    device.complete("framecnt", std::to_string(slots));
    // Bypass the qdisc: the workers limit their own rate, and all queues would share the qdisc's lock.
    device.complete("qdisc_bypass", "1");
    return CompletionResult{slot - kMbufLess};
}

}  // namespace penstock::drivers
