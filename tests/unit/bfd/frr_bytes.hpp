// SPDX-License-Identifier: Apache-2.0
// Messages of bfdd, for tests.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace penstock::bfd {

struct FrrSession {
    uint32_t flags = 0;  // 1: multihop, 16: IPv6, 32: passive, 64: shut down
    std::array<uint8_t, 4> local{192, 0, 2, 1}, peer{192, 0, 2, 2};
    uint32_t discriminator = 7;
    uint32_t min_tx_us = 50'000, min_rx_us = 60'000;
    uint8_t ttl = 255, multiplier = 3;
    std::string interface = "up0";
    uint8_t version = 1;
};

inline void put16(std::vector<uint8_t>& to, size_t at, uint16_t value) {
    to[at] = static_cast<uint8_t>(value >> 8);
    to[at + 1] = static_cast<uint8_t>(value);
}
inline void put32(std::vector<uint8_t>& to, size_t at, uint32_t value) {
    put16(to, at, static_cast<uint16_t>(value >> 16));
    put16(to, at + 2, static_cast<uint16_t>(value));
}

inline std::vector<uint8_t> frr_message(uint8_t version, uint16_t type, uint16_t id, size_t body) {
    std::vector<uint8_t> bytes(8 + body);
    bytes[0] = version;
    put16(bytes, 2, type);
    put16(bytes, 4, id);
    put16(bytes, 6, static_cast<uint16_t>(bytes.size()));
    return bytes;
}

// As bfdd 8.4.4 sends it: 140 bytes.
inline std::vector<uint8_t> frr_bytes(const FrrSession& session, bool removes = false) {
    auto bytes = frr_message(session.version, removes ? 3 : 2, 0, session.version == 1 ? 132 : 348);
    put32(bytes, 8, session.flags);
    std::memcpy(&bytes[12], session.local.data(), 4);
    std::memcpy(&bytes[28], session.peer.data(), 4);
    put32(bytes, 44, session.discriminator);
    put32(bytes, 48, session.min_tx_us);
    put32(bytes, 52, session.min_rx_us);
    put32(bytes, 56, 50'000);
    put32(bytes, 60, 50'000);
    bytes[68] = session.ttl;
    bytes[69] = session.multiplier;
    std::memcpy(&bytes[76], session.interface.data(), session.interface.size());
    return bytes;
}

}  // namespace penstock::bfd
