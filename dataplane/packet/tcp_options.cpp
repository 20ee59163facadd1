// SPDX-License-Identifier: Apache-2.0
#include "dataplane/packet/tcp_options.hpp"

#include <algorithm>

#include "dataplane/base/bytes.hpp"
#include "dataplane/packet/wire.hpp"

namespace penstock::packet {
namespace {
constexpr uint8_t kEndOfOptions = 0, kNoOperation = 1, kTimestamps = 8;
constexpr uint8_t kTimestampsBytes = 10;
}  // namespace

size_t find_tcp_option(const uint8_t* tcp, size_t header_bytes, uint8_t kind, uint8_t bytes) noexcept {
    for (size_t at = sizeof(TcpHeader); at < header_bytes && tcp[at] != kEndOfOptions;) {
        if (tcp[at] == kNoOperation) {
            ++at;
            continue;
        }
        if (at + 1 == header_bytes || tcp[at + 1] < 2 || tcp[at + 1] > header_bytes - at) {
            return 0;
        }
        if (tcp[at] == kind && tcp[at + 1] == bytes) {
            return at;
        }
        at += tcp[at + 1];
    }
    return 0;
}

uint32_t timestamp_of(const uint8_t* frame, const Parsed& parsed) noexcept {
    const uint8_t* const tcp = frame + parsed.l4_offset;
    const size_t at =
        find_tcp_option(tcp, size_t{parsed.payload_offset} - parsed.l4_offset, kTimestamps, kTimestampsBytes);
    return at == 0 ? 0 : std::max(load<Be32>(tcp + at + 2).host(), 1U);
}

}  // namespace penstock::packet
