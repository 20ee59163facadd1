// SPDX-License-Identifier: Apache-2.0
// The RSS hash computed bit by bit from its definition: the model of nat::Toeplitz and of the NICs that tests
// simulate.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "dataplane/packet/flow_key.hpp"

namespace penstock::test {

// For each bit of the input, from the left: if it is set, the leftmost 32 bits of the key are combined by
// exclusive or. Then the key shifts left by one bit.
[[nodiscard]] inline uint32_t plain_toeplitz(std::span<const uint8_t> key, std::span<const uint8_t> input) {
    uint32_t hash = 0;
    for (size_t bit = 0; bit < input.size() * 8; ++bit) {
        if ((input[bit / 8] >> (7 - bit % 8) & 1) == 0) {
            continue;
        }
        uint32_t leftmost = 0;
        for (size_t k = bit; k < bit + 32; ++k) {
            leftmost = leftmost << 1 | (k / 8 < key.size() ? key[k / 8] >> (7 - k % 8) & 1 : 0);
        }
        hash ^= leftmost;
    }
    return hash;
}

// Source address, destination address, source port, destination port, in network order.
[[nodiscard]] inline std::vector<uint8_t> rss_input(const packet::FlowKey& key) {
    std::vector<uint8_t> input;
    for (const IpAddr& address : {key.source, key.destination}) {
        input.insert(input.end(), address.bytes().begin() + (address.is_v4() ? 12 : 0),
                     address.bytes().end());
    }
    for (const L4Port port : {key.source_port, key.destination_port}) {
        input.push_back(static_cast<uint8_t>(port >> 8));
        input.push_back(static_cast<uint8_t>(port));
    }
    return input;
}

[[nodiscard]] inline uint32_t plain_rss(std::span<const uint8_t> key, const packet::FlowKey& as_received) {
    return plain_toeplitz(key, rss_input(as_received));
}

}  // namespace penstock::test
