// SPDX-License-Identifier: Apache-2.0
#include "dataplane/nat/toeplitz.hpp"

namespace penstock::nat {
namespace {

// The 32 bits of the key starting at bit `bit`.
uint32_t window(std::span<const uint8_t> key, size_t bit) noexcept {
    uint64_t bytes = 0;
    for (size_t i = 0; i < 5; ++i) {
        const size_t at = bit / 8 + i;
        bytes = bytes << 8 | (at < key.size() ? key[at] : 0);
    }
    return static_cast<uint32_t>(bytes >> (8 - bit % 8));
}

}  // namespace

Toeplitz::Toeplitz(std::span<const uint8_t> key) noexcept {
    for (size_t nibble = 0; nibble < by_nibble_.size(); ++nibble) {
        for (uint32_t value = 1; value < 16; ++value) {
            uint32_t hash = 0;
            for (size_t bit = 0; bit < 4; ++bit) {
                hash ^= (value >> (3 - bit) & 1) != 0 ? window(key, nibble * 4 + bit) : 0;
            }
            by_nibble_[nibble][value] = hash;
        }
    }
}

uint32_t Toeplitz::of(const packet::FlowKey& as_received) const noexcept {
    const bool is_v4 = as_received.source.is_v4();
    const size_t address_bytes = is_v4 ? 4 : 16;
    uint32_t hash = 0;
    const Nibble* table = by_nibble_.data();
    for (const IpAddr* address : {&as_received.source, &as_received.destination}) {
        const uint8_t* bytes = address->bytes().data() + (16 - address_bytes);
        for (size_t i = 0; i < address_bytes; ++i, table += 2) {
            hash ^= table[0][bytes[i] >> 4] ^ table[1][bytes[i] & 15];
        }
    }
    return hash ^ of_port(2 * address_bytes, as_received.source_port) ^
           of_port(2 * address_bytes + 2, as_received.destination_port);
}

}  // namespace penstock::nat
