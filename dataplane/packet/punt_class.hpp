// The class of a packet for Linux (base/punt_class.hpp), from its headers alone.
#pragma once

#include "dataplane/base/bytes.hpp"
#include "dataplane/base/punt_class.hpp"
#include "dataplane/packet/parsed.hpp"

namespace penstock::packet {

// `parsed` is what parse() found in `frame`. Of a frame with VLAN tags, which Linux gives to a VLAN interface on the twin, the packet
// behind the tags counts. Called for punted packets only.
[[nodiscard]] PuntClass punt_class_of(ByteView frame, const Parsed& parsed) noexcept;

}  // namespace penstock::packet
