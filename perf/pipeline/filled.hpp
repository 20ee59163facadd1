// SPDX-License-Identifier: Apache-2.0
// A gateway full of connections that packets have opened.
#pragma once

#include <cstdint>
#include <memory>

#include "perf/pipeline/gateway.hpp"

namespace penstock::perf {

// With room for a ninth more than `flows` connections, so that no search for a slot is long.
[[nodiscard]] std::unique_ptr<Gateway> with_room_for(uint32_t flows, IpFamily family = IpFamily::V4,
                                                     const Gateway::Role& role = {});
// A table of `flows` connections, all of one protocol, established.
[[nodiscard]] std::unique_ptr<Gateway> filled(uint32_t flows, Protocol protocol,
                                              IpFamily family = IpFamily::V4);

}  // namespace penstock::perf
