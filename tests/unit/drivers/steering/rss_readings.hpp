// SPDX-License-Identifier: Apache-2.0
// What a port reports about its RSS, made for tests.
#pragma once

#include <cstddef>
#include <cstdint>

#include "drivers/steering/rss.hpp"
#include "tests/support/prng.hpp"

namespace penstock::drivers::test_readings {

// RSS of a good device: a key that spreads, and a table with the queues in turn.
inline RssReading rss_of(unsigned queues, RssKinds kinds = kAllRssKinds, size_t entries = 128) {
    RssReading reading;
    reading.granted = true;
    reading.kinds = kinds;
    penstock::test::Prng prng(40);
    for (size_t i = 0; i < kRssKeyBytesUsual; ++i) {
        reading.key.push_back(static_cast<uint8_t>(prng.next()));
    }
    for (size_t entry = 0; entry < entries; ++entry) {
        reading.table.push_back(static_cast<uint16_t>(entry % queues));
    }
    return reading;
}

constexpr RssKinds kTcpOnly{.tcp4 = true, .udp4 = false, .tcp6 = true, .udp6 = false};

}  // namespace penstock::drivers::test_readings
