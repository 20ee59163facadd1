// SPDX-License-Identifier: Apache-2.0
// ReplyHashes for tests.
#pragma once

#include <cstdint>
#include <vector>

#include "dataplane/nat/reply_hash.hpp"
#include "tests/support/rss_vectors.hpp"

namespace penstock::test {

// A hash of all kinds of packets, with the key of the published verification suite and a table as most
// drivers fill it: queues in turn.
[[nodiscard]] inline nat::ReplyHash hash_in_turn(uint32_t entries, uint32_t workers) {
    nat::ReplyHash hash{.key = {kRssSuiteKey.begin(), kRssSuiteKey.end()},
                        .worker_of = {},
                        .tcp4 = true,
                        .udp4 = true,
                        .tcp6 = true,
                        .udp6 = true};
    for (uint32_t entry = 0; entry < entries; ++entry) {
        hash.worker_of.push_back({static_cast<uint8_t>(entry % workers)});
    }
    return hash;
}

}  // namespace penstock::test
