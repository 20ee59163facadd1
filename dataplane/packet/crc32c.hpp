// CRC32c, SCTP's checksum (RFC 9260, appendix A): whole, and how it changes when bytes under it do.
//
// Whole sums use the processor's own instruction where the build's target has one (SSE4.2, ARMv8's CRC extension), else a table. Changes
// need neither: a CRC is linear, so two messages of one length differ in their CRC by the CRC of their difference, begun at 0. Of a packet
// whose ports change the difference is four bytes and then zeros, and zeros only multiply what stands before them by a power of x, which is
// found in two tables. So a translated packet's payload is never read, and a sum that was wrong stays wrong by as much.
#pragma once

#include <cstddef>
#include <cstdint>

#include "dataplane/base/bytes.hpp"

namespace penstock::packet {

// Of bytes that come in pieces: crc32c_begin, then each piece, then crc32c_end.
inline constexpr uint32_t kCrc32cBegin = 0xffff'ffff;
[[nodiscard]] uint32_t crc32c_add(uint32_t state, ByteView bytes) noexcept;
[[nodiscard]] constexpr uint32_t crc32c_end(uint32_t state) noexcept {
    return ~state;
}
[[nodiscard]] inline uint32_t crc32c(ByteView bytes) noexcept {
    return crc32c_end(crc32c_add(kCrc32cBegin, bytes));
}

// How the CRC of `bytes` bytes changes, by exclusive or, when their first four do: `difference` is the exclusive or of these, as four bytes
// are loaded on this host. `bytes` is at most 65535 and at least 4.
[[nodiscard]] uint32_t crc32c_change(uint32_t difference, size_t bytes) noexcept;

}  // namespace penstock::packet
