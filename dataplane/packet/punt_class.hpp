// SPDX-License-Identifier: Apache-2.0
// The class of a punted packet (base/punt_class.hpp), from its headers alone.
#pragma once

#include "dataplane/base/bytes.hpp"
#include "dataplane/base/punt_class.hpp"
#include "dataplane/packet/parsed.hpp"

namespace penstock::packet {

// `parsed` is the result of parse() for `frame`. A frame with VLAN tags, which Linux delivers to a VLAN
// interface on the twin, is classified by the packet behind the tags. Called for punted packets only.
[[nodiscard]] PuntClass punt_class_of(ByteView frame, const Parsed& parsed) noexcept;

}  // namespace penstock::packet
