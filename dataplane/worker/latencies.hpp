// SPDX-License-Identifier: Apache-2.0
// What the latencies of TCP connections are measured for (docs/adr/0048).
#pragma once

#include <cstdint>

namespace penstock::worker {

enum class Latencies : uint8_t { Off, Services, ServicesAndBackends };

}  // namespace penstock::worker
