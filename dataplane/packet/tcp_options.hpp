// Options of a TCP header (RFC 9293, 3.1).
#pragma once

#include <cstddef>
#include <cstdint>

#include "dataplane/packet/parsed.hpp"

namespace penstock::packet {

// Where in the TCP header that begins at `tcp` the first option of `kind` and of `bytes` in all is. 0: there is none before the end of the
// options, or before one whose length cannot be true.
[[nodiscard]] size_t find_tcp_option(const uint8_t* tcp, size_t header_bytes, uint8_t kind,
                                     uint8_t bytes) noexcept;

// TSval of a TCP segment (RFC 7323, 3.2). 0: it carries none. A true 0 is reported as 1, the next one.
[[nodiscard]] uint32_t timestamp_of(const uint8_t* frame, const Parsed& parsed) noexcept;

}  // namespace penstock::packet
