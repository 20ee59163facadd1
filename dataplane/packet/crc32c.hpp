// SPDX-License-Identifier: Apache-2.0
// CRC32c, SCTP's checksum (RFC 9260, appendix A): full sums and incremental updates.
//
// Full sums use the processor's instruction if the build target has one (SSE4.2, ARMv8's CRC extension),
// otherwise a table. Incremental updates need neither. A CRC is linear: two messages of one length differ in
// their CRC by the CRC of their difference, started at 0. If only the ports of a packet change, the
// difference is four bytes followed by zeros. Zeros multiply the preceding value by a power of x, which is
// looked up in two tables. So the payload of a translated packet is never read, and a wrong sum stays wrong
// by the same difference.
#pragma once

#include <cstddef>
#include <cstdint>

#include "dataplane/base/bytes.hpp"

namespace penstock::packet {

// For bytes that come in pieces: kCrc32cBegin, then crc32c_add() for each piece, then crc32c_end().
inline constexpr uint32_t kCrc32cBegin = 0xffff'ffff;
[[nodiscard]] uint32_t crc32c_add(uint32_t state, ByteView bytes) noexcept;
[[nodiscard]] constexpr uint32_t crc32c_end(uint32_t state) noexcept {
    return ~state;
}
[[nodiscard]] inline uint32_t crc32c(ByteView bytes) noexcept {
    return crc32c_end(crc32c_add(kCrc32cBegin, bytes));
}

// The change of the CRC of `bytes` bytes, by exclusive or, when their first four bytes change. `difference`
// is the exclusive or of their old and new value, as loaded on this host. `bytes` is 4-65,535.
[[nodiscard]] uint32_t crc32c_change(uint32_t difference, size_t bytes) noexcept;

}  // namespace penstock::packet
