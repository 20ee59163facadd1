// SPDX-License-Identifier: Apache-2.0
// SCTP for a middlebox (RFC 9260): the meaning of a packet's chunks for its association, the checksum, and
// ABORTs that the gateway originates. Addresses within INIT and INIT ACK are not modified: an association is
// translated on its primary path only (docs/adr/0027).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "dataplane/base/bytes.hpp"
#include "dataplane/packet/crc32c.hpp"
#include "dataplane/packet/flow_key.hpp"
#include "dataplane/packet/parsed.hpp"
#include "dataplane/packet/wire.hpp"

namespace penstock::packet {

// Maximum number of control chunks that are examined per packet. A stack bundles two or three, and all of
// them precede the first data chunk (RFC 9260, 6.10), where the examination ends.
inline constexpr unsigned kSctpChunksMax = 8;

struct SctpSummary {
    SctpEvent event = SctpEvent::None;
    bool reflects_tag = false;
};

// `sctp` ranges from the common header to the IP packet's end. Empty for a packet that no stack sends and
// every stack discards:
// - a chunk that is longer than the packet or shorter than its header;
// - INIT, INIT ACK or SHUTDOWN COMPLETE bundled with other chunks (RFC 9260, 6.10);
// - an initiate tag of 0 (3.3.2);
// - a verification tag of 0 on any chunk except INIT, or a nonzero one on INIT (8.5.1).
// Padding behind the last chunk is not required.
[[nodiscard]] std::optional<SctpSummary> summarize_sctp(ByteView sctp) noexcept;

// For a Flow of protocol SCTP that the parser has summarized.
[[nodiscard]] inline uint32_t verification_tag(const uint8_t* frame, const Parsed& parsed) noexcept {
    return load<Be32>(frame + parsed.l4_offset + offsetof(SctpHeader, verification_tag)).host();
}
// The same for a packet with the event Init or InitAck.
[[nodiscard]] inline uint32_t initiate_tag(const uint8_t* frame, const Parsed& parsed) noexcept {
    return load<Be32>(frame + parsed.payload_offset + sizeof(SctpChunkHeader) +
                      offsetof(SctpInitFields, initiate_tag))
        .host();
}

// Bytes from the common header to the end of the IP packet: the range that the checksum covers.
[[nodiscard]] inline size_t sctp_bytes(const Parsed& parsed) noexcept {
    return size_t{parsed.l3_length} - (parsed.l4_offset - parsed.l3_offset);
}

[[nodiscard]] bool has_valid_sctp_checksum(ByteView sctp) noexcept;

// The checksum of an SCTP packet of `bytes` bytes that carried `sent`, after its ports changed from `before`
// to `after` (both as four bytes are loaded).
[[nodiscard]] inline uint32_t sctp_checksum_after(uint32_t sent, uint32_t before, uint32_t after,
                                                  size_t bytes) noexcept {
    return sent ^ crc32c_change(before ^ after, bytes);
}

// Writes the ports of the SCTP packet at `sctp`, which has a complete header, and updates its checksum. A
// checksum of 0 that is not the correct value means "none sent" (RFC 9653, 5) and stays.
void set_sctp_ports(std::span<uint8_t> sctp, Be16 source, Be16 destination) noexcept;

inline constexpr uint16_t kAbortBytes = sizeof(SctpHeader) + sizeof(SctpChunkHeader);

// Writes an ABORT without a cause (RFC 9260, 3.3.7) behind an IP header, including its checksum. `flags`:
// kReflectsTag if `tag` is a tag that the receiver sent, 0 if it is the receiver's own tag.
void store_abort(uint8_t* sctp_at, L4Port source, L4Port destination, uint32_t tag, uint8_t flags) noexcept;

// Writes the same as a whole frame to `frame`, which has room for kBareSegmentBytesMax (reset.hpp). Ethernet
// addresses are zero. Returns its length.
uint16_t build_abort(std::span<uint8_t> frame, const FlowKey& key, uint32_t tag) noexcept;

}  // namespace penstock::packet
