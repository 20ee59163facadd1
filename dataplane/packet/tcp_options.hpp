// SPDX-License-Identifier: Apache-2.0
// Options of a TCP header (RFC 9293, 3.1).
#pragma once

#include <cstddef>
#include <cstdint>

#include "dataplane/packet/parsed.hpp"

namespace penstock::packet {

// Offset from `tcp`, the start of a TCP header, of the first option of `kind` with a length of `bytes`. 0 if
// there is none before the end of the options or before an option with an invalid length.
[[nodiscard]] size_t find_tcp_option(const uint8_t* tcp, size_t header_bytes, uint8_t kind,
                                     uint8_t bytes) noexcept;

// TSval of a TCP segment (RFC 7323, 3.2); 0 if it has none. An actual TSval of 0 is returned as 1.
[[nodiscard]] uint32_t timestamp_of(const uint8_t* frame, const Parsed& parsed) noexcept;

}  // namespace penstock::packet
