// IPv4 options, as far as a gateway has to know them: where each ends, and which of them say by which way the packet is to go.
#pragma once

#include <optional>

#include "dataplane/base/bytes.hpp"
#include "dataplane/base/verdict.hpp"

namespace penstock::packet {

// Why a packet with these options, all that stands between the fixed header and its end, goes no further; empty: it may.
//   BadIpHeader  an option that is cut off, or whose length cannot be (RFC 791, 3.1)
//   IpOptions    a source route, loose or strict: it lets a sender choose the way round whoever filters (RFC 7126, 4.3 and 4.4)
[[nodiscard]] std::optional<DropReason> refuse_options(ByteView options) noexcept;

}  // namespace penstock::packet
