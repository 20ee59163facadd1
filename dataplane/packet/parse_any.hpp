// All the rules of parse.hpp, in order, for any frame. parse() comes here with what is not common; tests compare the two where it is.
#pragma once

#include "dataplane/packet/parse.hpp"

namespace penstock::packet {

[[nodiscard]] ParseResult parse_any(ByteView frame, Parsed& out, IpChecksum ip_checksum) noexcept;

}  // namespace penstock::packet
