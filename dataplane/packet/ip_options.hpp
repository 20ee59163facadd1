// SPDX-License-Identifier: Apache-2.0
// Validation of IPv4 options, as far as a gateway needs it: the length of each option, and source routes.
#pragma once

#include <optional>

#include "dataplane/base/bytes.hpp"
#include "dataplane/base/verdict.hpp"

namespace penstock::packet {

// Why a packet with these options (all bytes between the fixed header and its end) is dropped; empty if it
// passes.
//   BadIpHeader  an option is truncated, or its length is invalid (RFC 791, 3.1)
//   IpOptions    a source route, loose or strict: it lets a sender choose a path around filters (RFC 7126,
//                4.3 and 4.4)
[[nodiscard]] std::optional<DropReason> refuse_options(ByteView options) noexcept;

}  // namespace penstock::packet
